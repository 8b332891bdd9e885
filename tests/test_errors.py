"""Text from users, servers and other programs in terminal messages."""

import contextlib
import io
import logging

import pytest

from docmt.cli.main import main
from docmt.errors import UserError, escape_controls, first_line
from docmt.logs import set_up_logging

NASTY = "a\x1b[2Jb\x9b31mc\x07\x00\rd\u0085e"
ESCAPED = r"a\x1b[2Jb\x9b31mc\x07\x00\x0dd\x85e"


@pytest.mark.parametrize(
    ("message", "start"),
    [
        ("", "OSError"),
        (" \n\t\n", "OSError"),
        ("\n\n  disk full \nmore", "disk full"),
        ("x" * 999, "x" * 150),
    ],
)
def test_first_line_of_any_exception(message, start):
    assert first_line(OSError(message)) == start


def test_control_characters_are_shown():
    assert escape_controls(NASTY) == ESCAPED
    assert escape_controls("a\tb\nc\x1b", keep="\n\t") == "a\tb\nc\\x1b"
    assert "\x1b" not in str(UserError(NASTY))


@pytest.mark.parametrize(
    "arguments", [("%s", NASTY), (NASTY,), ("%s printed:\n%s", "x", NASTY)], ids=["quoted", "whole", "lines"]
)
def test_messages_of_the_log_are_inert(capsys, arguments):
    set_up_logging()
    try:
        logging.getLogger("docmt.test").warning(*arguments)
        error = capsys.readouterr().err
    finally:
        logging.basicConfig(force=True)
    assert ESCAPED in error
    assert not set(error) & set("\x1b\x9b\x07\x00\r\u0085")


@pytest.mark.parametrize(
    "arguments",
    [
        ["status", NASTY.replace("\0", "")],
        ["corpora", NASTY.replace("\0", "")],
        ["translate", "--model", "m", "--beam-size", NASTY.replace("\0", "")],
        ["translate", "--model", NASTY.replace("\0", "")],
        ["clean", "--directory", NASTY.replace("\0", "")],
    ],
    ids=lambda arguments: arguments[0],
)
def test_arguments_in_errors_are_inert(capsys, arguments):
    with contextlib.redirect_stdout(io.StringIO()):  # closed after an OSError
        assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "docmt: error: " in error
    assert not set(error) & set("\x1b\x9b\x07\u0085")


def test_examples_of_the_filter_are_inert(tmp_path, capsys):
    for lang, text in (("en", "A sound sentence."), ("de", "Ein heiler Satz.")):
        (tmp_path / f"t.{lang}").write_text(f"same {NASTY} text\n{text}\n", encoding="utf-8", newline="")
    (tmp_path / "t.documents.tsv").write_text("document\tn_sentences\nd\x1b[1m\t2\n", encoding="utf-8")
    assert main(["corpora", "filter", "--inputs", str(tmp_path / "t"), "--languages", "en", "de", "--show", "2"]) == 0
    output = capsys.readouterr().out
    assert r"a\x1b[2Jb" in output
    assert not set(output) & set("\x1b\x9b\x07\x00\r\u0085")
