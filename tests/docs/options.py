"""Checks command lines without running them: that the commands, options, modules and make targets exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator

import click

from nsfrc.cli import cli
from tests.docs.blocks import ROOT, Block, PageError

_CONTROL = {"|", "||", "&", "&&", ";", "(", ")"}
_ASSIGNMENT = re.compile(r"^\w+=")


def check(command: str, block: Block, offset: int = 0) -> None:
    """Raise for the first thing in a line of bash that does not exist."""
    try:
        for words in simple_commands(command):
            _check(words)
    except (click.ClickException, ValueError, LookupError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        raise block.fail(f"`{command}`: {message}", offset) from None


def simple_commands(line: str) -> Iterator[list[str]]:
    """The commands that a line of bash consists of, word by word, without assignments and redirections."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, "#"
    words: list[str] = []
    skip = False
    for word in [*reader, ";"]:
        if word in _CONTROL:
            if words:
                yield words
            words = []
        elif skip or set(word) <= set("<>&"):
            skip = not skip  # a redirection, and then its file
        elif words or not _ASSIGNMENT.match(word):
            words.append(word)


def _check(words: list[str]) -> None:
    program, *arguments = words
    program = program.rpartition("/")[2]
    if program == "nsfrc":
        parse(arguments)
    elif program in ("python", "python3") and arguments[:1] == ["-m"]:
        _module(arguments[1])
    elif program == "make":
        targets = (ROOT / "Makefile").read_text()
        for target in arguments:
            if "=" not in target and not re.search(rf"^{re.escape(target)}:", targets, re.MULTILINE):
                raise LookupError(f"the Makefile has no target {target}")


def _module(name: str) -> None:
    ours = name.split(".")[0] in ("nsfrc", "examples")
    if ours and importlib.util.find_spec(name) is None:
        raise LookupError(f"there is no module {name}")


def parse(arguments: list[str]) -> None:
    """Raise click's own error where `nsfrc ARGUMENTS` could not be understood; nothing is run, no file looked for."""
    command, context, rest = resolve(arguments)
    if "--help" in rest or "-h" in rest or (isinstance(command, click.Group) and rest in ([], ["--version"])):
        return
    values, extra, _ = command.make_parser(context).parse_args(list(rest))
    if extra:
        raise click.UsageError(f"unexpected argument {extra[0]!r}")
    for parameter in command.params:
        value = values.get(parameter.name or "")
        given = bool(value) and not repr(value).startswith("Sentinel")
        if parameter.required and not given:
            raise click.UsageError(f"{parameter.human_readable_name} is missing")
        if given and isinstance(parameter.type, click.Choice):
            for one in value if isinstance(value, list | tuple) else [value]:
                if not str(one).isupper():  # a word in capitals stands for any
                    parameter.type.convert(one, parameter, context)


def resolve(arguments: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """The command that words name, and the words after its name."""
    command: click.Command = cli
    # As when it is run: a command keeps the help options of the first context that it was asked in.
    context = click.Context(cli, info_name="nsfrc", **cli.context_settings)
    rest = list(arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    return command, context, rest


def mentioned(span: str, where: str) -> None:
    """Check `nsfrc ...` in running text, which may leave arguments out: its command and options exist."""
    words = span.split()[1:]
    if not words or not words[0].islower():  # `nsfrc COMMAND --help`
        return
    try:
        command, _, rest = resolve(words)
    except click.ClickException as error:
        raise PageError(f"{where}: `{span}`: {error.format_message()}") from None
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    for word in rest:
        option = word.partition("=")[0].rstrip(",.")
        if option.startswith("--") and option not in known | {"--help", "--version"}:
            raise PageError(f"{where}: `{span}`: nsfrc {command.name} has no option {option}")
