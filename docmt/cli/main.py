"""The `docmt` command."""

import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

from cyclopts import CycloptsError, Group, Parameter

from docmt import __version__
from docmt.checksums import is_checking
from docmt.commands import CommandGroup
from docmt.current_run import check_version
from docmt.errors import UserError, escape_controls
from docmt.files import final_path
from docmt.logs import set_up_logging
from docmt.outputs import check_outputs
from docmt.utf8 import print_utf8, use_utf8

COLLECT_EVERY = 100_000
"""New objects between two garbage collections. With Python's default of 700, collections take a sixth of the time for
importing torch, which creates a million objects and no garbage."""

app = CommandGroup(
    name="docmt",
    version=f"docmt {__version__}",
    help="Document-level machine translation.",
    help_format="plaintext",
    # Lists follow one option (`--inputs a b`), switches have no opposite, and the last repeated option counts.
    default_parameter=Parameter(negative=(), consume_multiple=True, allow_repeating=True),
)
app["--help"].group = app["--version"].group = Group("Help", sort_key=2)
# Modules are imported when one of their commands is called, because importing torch takes seconds.
USER = Group("User commands", sort_key=0)
WORKFLOW = Group("Workflow steps", sort_key=1)
for group, module, name, help in (
    (USER, "docmt.cli.init:command", "init", "Start a study in a new folder."),
    (USER, "docmt.cli.config:commands", "config", "Check and explain a configuration."),
    (USER, "docmt.cli.run:command", "run", "Run a study, or parts of it, with Snakemake."),
    (USER, "docmt.cli.status:command", "status", "Show training progress and failed jobs of a study."),
    (USER, "docmt.cli.clean:command", "clean", "List or delete files that a study no longer needs."),
    (USER, "docmt.cli.translate:command", "translate", "Translate text files or standard input."),
    (USER, "docmt.cli.bench:commands", "bench", "Check GPU results against the CPU, and benchmark a GPU."),
    (USER, "docmt.models.commands:commands", "models", "Fetch and import published models, and add parsers."),
    (WORKFLOW, "docmt.corpora.commands:commands", "corpora", "Fetch, read and check corpora."),
    (WORKFLOW, "docmt.controlled.commands:commands", "controlled", "Generate the controlled corpus."),
    (WORKFLOW, "docmt.text.commands:commands", "text", "Convert sentences to subwords and back."),
    (WORKFLOW, "docmt.discourse.commands:commands", "discourse", "Read treebanks, segment EDUs and parse RST trees."),
    (WORKFLOW, "docmt.instances.commands:commands", "instances", "Split documents into instances of whole sentences."),
    (WORKFLOW, "docmt.training.commands:command", "train", "Train a model."),
    (WORKFLOW, "docmt.decoding.commands:commands", "decode", "Translate instances and score candidates."),
    (WORKFLOW, "docmt.evaluation.commands:commands", "evaluate", "Score translations and test sets."),
    (WORKFLOW, "docmt.report.commands:commands", "report", "Collect scores into tables, figures and a page."),
):
    app.command(module, name=name, help=help, group=group)


@app.meta.default
def _run(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    force: bool = False,
    verbose: bool = False,
) -> Any:
    """Run a command with the options that all commands share.

    Args:
        force: replace existing files and folders that docmt did not write, except inputs.
        verbose: log more, and show the place in the code where a system error occurred.
    """
    set_up_logging(verbose=verbose)
    return run(words, force=force)


def run(arguments: Sequence[str], *, force: bool = False) -> int:
    """Run a command without the shared options, and return its exit code.

    Raises:
        UserError: an error that the user can fix.
        CycloptsError: unknown, missing or malformed options.
    """
    command, bound, _ = app.parse_args(list(arguments), exit_on_error=False, print_error=False)
    bound.apply_defaults()
    # The first process of a training checks for all.
    if command.__module__.startswith("docmt.") and is_checking():
        check_outputs(command, bound.arguments, arguments, force=force)
    return command(*bound.args, **bound.kwargs) or 0


def _stop(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # a second signal must not interrupt the removal of unfinished files
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code: 0, or 2 for an error that the user can fix."""
    if arguments is None:
        use_utf8()
    print_utf8()
    gc.set_threshold(COLLECT_EVERY)
    if arguments is None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            # By default Python ends at once, and unfinished output stays. Under `nohup`, SIGHUP is ignored. A training
            # sets other handlers.
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _stop)
    # Pydantic searches every installed package for plugins, which docmt does not use.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        check_version()
        words = sys.argv[1:] if arguments is None else arguments
        code = app.meta(words, exit_on_error=False, print_error=False, result_action="return_value") or 0
        sys.stdout.flush()  # otherwise Python would report a full disk after the exit code is determined
        return code
    except UserError as error:
        print(f"docmt: error: {error}", file=sys.stderr)
        return 2
    except CycloptsError as error:
        print(f"docmt: error: {escape_controls(' '.join(str(error).split()))}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        if logging.getLogger().isEnabledFor(logging.DEBUG):
            raise
        # For example, a read-only folder, a full disk, or too many open files.
        path = final_path(Path(str(error.filename or "output")))
        subject = escape_controls(f"{path}: {error.strerror or error}")
        print(f"docmt: error: {subject} (docmt --verbose COMMAND … shows where in the code)", file=sys.stderr)
        with contextlib.suppress(OSError):
            sys.stdout.close()  # do not try to write the rest again
        return 2
    except KeyboardInterrupt:
        print("docmt: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
