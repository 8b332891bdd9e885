"""The `docmt` command."""

import argparse
import contextlib
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from docmt import __version__
from docmt.cli.options import CommandParser
from docmt.errors import UserError
from docmt.logs import set_up_logging

GROUPS = {
    "corpora": "fetch, read, generate and check corpora",
    "text": "normalize, tokenize, truecase, apply BPE, and restore text",
    "discourse": "prepare discourse treebanks, EDUs and trees",
    "instances": "split documents into instances of whole sentences",
    "train": "train a model",
    "models": "list, fetch, import, bundle and export models",
    "decode": "translate instances, score given targets",
    "translate": "translate files: text, Markdown, subtitles, PO, XLIFF, TMX, HTML, DOCX, ODT, or plain lines",
    "evaluate": "score hypotheses and contrastive test sets",
    "report": "gather scores into tables, figures and an HTML page",
    "status": "show the state of a study (done, running, failed), and its costs",
    "diff": "show what a changed configuration runs again",
    "tidy": "list, or delete, what a study no longer needs",
    "config": "check and explain a configuration",
    "init": "start a study in a new folder: the workflow, its profiles and the example configurations",
}

COLLECT_EVERY = 100_000
"""New objects between two searches for garbage. By default it is 700, and the searches take a sixth of the time of
importing torch, which makes a million objects and no garbage."""


def build_parser(group: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; with `group`, only the module of that group is imported (torch takes seconds)."""
    parser = argparse.ArgumentParser(prog="docmt", description="Document-level machine translation.")
    parser.add_argument("--version", action="version", version=f"docmt {__version__}")
    parser.add_argument("--verbose", action="store_true", help="log more")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=CommandParser)
    for name, summary in GROUPS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == group:
            importlib.import_module(f"docmt.cli.{name}").add_commands(command)
    return parser


def _describe(error: OSError) -> str:
    """What the system refused: a folder that is read-only, a full disk, too many open files."""
    subject = error.filename or "output"
    return f"{subject}: {error.strerror or error} (docmt --verbose COMMAND … shows where in the code)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0, or 2 for an error that the user can fix."""
    gc.set_threshold(COLLECT_EVERY)
    # Pydantic looks for its plugins in every installed package; docmt uses none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    arguments.sort(key=lambda word: word != "--verbose")  # it may stand anywhere
    group = next((word for word in arguments if word in GROUPS), None)
    options = build_parser(group).parse_args(arguments)
    set_up_logging(verbose=options.verbose)
    try:
        code = options.run(options) or 0
        sys.stdout.flush()  # Python itself would report a full disk only after the exit code is decided
        return code
    except UserError as error:
        print(f"docmt: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if options.verbose:
            raise
        print(f"docmt: error: {_describe(error)}", file=sys.stderr)
        with contextlib.suppress(OSError):
            sys.stdout.close()  # what cannot be written is not tried again
        return 2
    except KeyboardInterrupt:
        print("docmt: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
