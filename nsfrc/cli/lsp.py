"""`nsfrc lsp`: the language server."""

from __future__ import annotations

import click

from nsfrc.cli.lazy import without_numpy_threads
from nsfrc.errors import NsfrcError


@click.command(
    "lsp",
    epilog="""\b
Example:
  nsfrc lsp                 an editor starts it; docs/editors.md has the settings
""",
)
def command() -> None:
    """Serve an editor by the Language Server Protocol, on standard input and output.

    It tells mistakes as `nsfrc check` does while you write, mends those whose hint says what was meant, shows what
    a predicate is, completes names, goes to definitions, renames, and lays out as `nsfrc format` does.
    """
    without_numpy_threads()
    try:
        import pygls  # noqa: F401
    except ImportError:
        raise NsfrcError("nsfrc lsp needs pygls: pip install 'nsfrc[lsp]'") from None
    from nsfrc.editor.server import server

    server().start_io()
