"""What commands with --json share: whatever is wrong is said as JSON, too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from nsfrc.errors import CompileError, Diagnostic, NsfrcError


@contextmanager
def errors_as_json(wanted: bool) -> Iterator[None]:
    """Errors within become {"errors": [...]} on standard output and exit code 1, if wanted."""
    try:
        yield
    except NsfrcError as error:
        if not wanted:
            raise
        found = error.diagnostics if isinstance(error, CompileError) else (Diagnostic(None, str(error)),)
        click.echo(json.dumps({"errors": [diagnostic.as_json() for diagnostic in found]}, indent=1))
        raise SystemExit(1) from None
