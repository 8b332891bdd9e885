"""Subtitles: speakers, music and notes end segments and stay. Plain text: columns and lists stay."""

from pathlib import Path

import pytest
from formats_standin import shout, translated

CUES = """1
00:00:01,000 --> 00:00:02,000
♪ La la la,
la la la ♪

2
00:00:02,100 --> 00:00:03,000
NINA: I told you

3
00:00:03,100 --> 00:00:04,000
that he would come.

4
00:00:04,100 --> 00:00:05,000
<i>[DOOR slams]</i>

5
00:00:05,100 --> 00:00:06,000
{\\an8}- Watch out!
– MAN 2: <b>Why</b>
not?

6
00:00:06,100 --> 00:00:07,000
(sighs) It is -5 degrees,

7
00:00:07,100 --> 00:00:08,000
<i>♪ and cold ♪</i>

8
00:00:08,100 --> 00:00:09,000
# Song #
"""
SENTENCES = [
    "La la la, la la la",
    "I told you that he would come.",
    "DOOR slams",
    "Watch out!",
    "{0}Why{1} not?",
    "(sighs) It is -5 degrees,",
    "and cold",
    "Song #",
]


def read_and_translated(name, content):
    """The documents that a model reads of a file, its bytes after translation, and the counts."""
    seen = []
    return seen, *translated(Path(name), content.encode(), lambda documents: seen.extend(documents) or shout(documents))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_speakers_music_and_notes_end_segments_and_stay(end):
    seen, out, counts = read_and_translated("a.srt", CUES.replace("\n", end))
    assert seen == [SENTENCES]
    expected = CUES.upper().replace("<I>", "<i>").replace("</I>", "</i>").replace("<B>", "<b>").replace("</B>", "</b>")
    assert out.decode() == expected.replace("{\\AN8}", "{\\an8}").replace("\n", end)
    assert counts.untouched.total() == 0


WRAPPED = "A paragraph that was wrapped by an editor so that its lines are\nas long as they can be, more or less.\n"
DASHES = "The reader who was tired of all that had been written\n{} October being the only day of rest - went home.\n"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Name:    Ada\nPhone:   123\nTown:\tParis\n", ["Name:", "Ada", "Phone:", "Town:", "Paris"]),
        ("* a bullet\n1) numbered\n2. second\n- third\n", ["a bullet", "numbered", "second", "third"]),
        ("Best regards,\nAda Lovelace\n", ["Best regards,", "Ada Lovelace"]),
        ("  Indented\n\tby a tab\n", ["Indented", "by a tab"]),
        (WRAPPED, [WRAPPED.replace("\n", " ").strip()]),
        (
            "  * " + WRAPPED.replace("\n", "\n    ").strip() + "\n  * next\n",
            [WRAPPED.replace("\n", " ").strip(), "next"],
        ),
        *((DASHES.format(sign), [DASHES.format(sign).replace("\n", " ").strip()]) for sign in ("-", "a)")),
        (
            "We need:\n- An item wrapped by an editor so\n  that lines are long and fill it up\n- second\n",
            ["We need:", "An item wrapped by an editor so that lines are long and fill it up", "second"],
        ),
        ("Two  blanks stay in a sentence.  Next one.\n", ["Two  blanks stay in a sentence.", "Next one."]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_columns_and_lists_stay(text, sentences, end):
    seen, out, _ = read_and_translated("a.txt", text.replace("\n", end))
    assert seen == [sentences]
    text = text.replace("Two  blanks", "Two blanks")  # white space within a sentence is that of the model
    assert out.decode() == text.upper().replace("\n", end)
