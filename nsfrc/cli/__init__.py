"""The command line. Commands are imported when they are called, so that `nsfrc --help` answers at once."""

from __future__ import annotations

import sys

import click

from nsfrc import __version__
from nsfrc.cli.lazy import LazyGroup

# command -> (module, what `nsfrc --help` says of it)
COMMANDS = {
    "compile": ("nsfrc.cli.compile", "Compile a Prolog program into a .nsfrc file and report what it costs."),
    "check": ("nsfrc.cli.check", "Report every mistake in a program, and write no file."),
    "format": ("nsfrc.cli.format", "Lay programs out in one way, without a change to what they say."),
    "lsp": ("nsfrc.cli.lsp", "Serve an editor: mistakes, names and layout while you write."),
    "explain": ("nsfrc.cli.explain", "Describe a program in words: what it asks, its clauses, and what each costs."),
    "reason": ("nsfrc.cli.reason", "Apply a program to facts with probabilities, without images."),
    "infer": ("nsfrc.cli.infer", "Answer a program's question for every image in a folder."),
    "serve": ("nsfrc.cli.serve", "Answer over HTTP: pictures, detections or facts in, answers with reasons out."),
    "summarise": ("nsfrc.cli.summarise", "Count the rows of a folder that nsfrc infer --ray wrote."),
    "new": ("nsfrc.cli.new", "Write a commented program to start from, for a detector of your own."),
    "play": ("nsfrc.cli.play", "Open a page to try a program on pictures, ask what if, and learn from labels."),
    "learn": ("nsfrc.cli.learn", "Learn a program's rules from labelled images or facts."),
    "import": ("nsfrc.cli.importing", "Turn a published plain-text language folder into one .pl file."),
    "data": ("nsfrc.cli.data", "Make figures or scenes with labels and true objects, to train and test on."),
    "train": ("nsfrc.cli.train", "Train a perception model, or a concept such as closeby."),
    "weights": ("nsfrc.cli.weights", "Import published weights, write detectors as ONNX, list what there is."),
    "figures": ("nsfrc.cli.figures", "Draw the figures of the paper from what nsfrc computes."),
    "bench": ("nsfrc.cli.bench", "Measure speed, memory and accuracy on this machine, with baselines."),
    "programs": ("nsfrc.cli.programs", "List the programs that come with nsfrc."),
    "completion": ("nsfrc.cli.completion", "Print the script that completes commands and names on TAB."),
}


@click.group(
    cls=LazyGroup,
    elsewhere=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: nsfrc compile twopairs.pl",
)
@click.version_option(__version__, prog_name="nsfrc")
def cli() -> None:
    """Compile Prolog programs about objects in images, and reason with them fast and differentiably."""


def main() -> None:
    """Entry point: everything wrong with what the user gave is a message and exit code 1."""
    from nsfrc.errors import CompileError, NsfrcError

    try:
        code = cli.main(prog_name="nsfrc", standalone_mode=False)
    except CompileError as error:  # its lines say themselves what is an error and what a warning
        click.echo(str(error), err=True)
        code = 1
    except NsfrcError as error:
        click.echo(f"error: {error}", err=True)
        code = 1
    except click.ClickException as error:
        error.show()
        code = 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        code = 130
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except MemoryError:
        click.echo("error: out of memory: use fewer slots (--slots), or a smaller --batch-size", err=True)
        code = 1
    except OSError as error:  # such as a full disk behind standard output
        click.echo(f"error: {error.strerror or error}", err=True)
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
