"""`nsfrc completion`: the script that makes TAB complete what nsfrc takes."""

from __future__ import annotations

import os
from pathlib import PurePath

import click

# How each shell loads the script for good, as its first line says.
INSTALL = {
    "bash": 'add this line to ~/.bashrc:  eval "$(nsfrc completion bash)"',
    "zsh": 'add this line to ~/.zshrc, after compinit:  eval "$(nsfrc completion zsh)"',
    "fish": "write this once:  nsfrc completion fish > ~/.config/fish/completions/nsfrc.fish",
}


@click.command(
    "completion",
    epilog="""\b
Examples:
  nsfrc completion                           for the shell that you use ($SHELL)
  eval "$(nsfrc completion bash)"            from now on in this bash
""",
)
@click.argument("shell", type=click.Choice(list(INSTALL)), required=False)
def command(shell: str | None) -> None:
    """Print a script for SHELL that completes commands, options, programs and other names on TAB.

    Its first line says how to install it. Nothing is written.
    """
    from click.shell_completion import get_completion_class

    from nsfrc.cli import cli

    shell = shell or _usual()
    script = get_completion_class(shell)
    assert script is not None
    source = script(cli, {}, "nsfrc", "_NSFRC_COMPLETE").source()
    head, _, rest = source.partition("\n")
    if head.startswith("#compdef"):  # which zsh wants to be the first line
        click.echo(f"{head}\n# {INSTALL[shell]}\n{rest}")
    else:
        click.echo(f"# {INSTALL[shell]}\n{source}")


def _usual() -> str:
    path = os.environ.get("SHELL", "")
    name = PurePath(path).name
    if name not in INSTALL:
        said = f"$SHELL is {path}" if path else "$SHELL is not set"
        raise click.UsageError(f"{said}: name one of {', '.join(INSTALL)}, as in nsfrc completion bash")
    return name
