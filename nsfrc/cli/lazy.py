"""Groups of commands that are imported when they are called, so that `nsfrc --help` answers at once."""

from __future__ import annotations

import importlib
import os
from typing import Any

import click
from click.shell_completion import CompletionItem


def without_numpy_threads() -> None:
    """Let numpy start no threads, which takes longer than checking a program; there are no matrices to multiply."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class LazyGroup(click.Group):
    """A group that knows its commands by name.

    elsewhere: command → (module whose `command` it is, or module:name, what the group's help says of it).
    """

    def __init__(self, *args: Any, elsewhere: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.elsewhere = elsewhere

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.elsewhere)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self.elsewhere:
            return None
        module, _, attribute = self.elsewhere[name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute or "command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.elsewhere.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands by name, without importing any of them, and the group's own options."""
        found = [CompletionItem(name, help=text) for name, (_, text) in self.elsewhere.items()
                 if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.elsewhere and not args[0].startswith("-"):
            from nsfrc.errors import did_you_mean

            hint = did_you_mean(args[0], self.elsewhere) or f"see {ctx.command_path} --help"
            ctx.fail(f"no such command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)
