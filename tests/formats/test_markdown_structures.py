# ruff: noqa: E501 (rows of a table)
"""Markdown as people write it: special lines come back as lines."""

from pathlib import Path

import pytest
from formats_standin import translated

STRUCTURES = {
    "footnotes": (
        "A[^1] b[^n].\n\n[^1]: First note.\n[^n]: Second note\nof two lines.\n[id]: https://a.b/c 'Stays'\n",
        "A[^1] B[^n].\n\n[^1]: FIRST NOTE.\n[^n]: SECOND NOTE OF TWO LINES.\n[id]: https://a.b/c 'Stays'\n",
    ),
    "divs": (
        ":::note\nBody text\nof it.\n:::\n\n::: {.callout-tip title='x'}\nMore.\n:::\n",
        ":::note\nBODY TEXT OF IT.\n:::\n\n::: {.callout-tip title='x'}\nMORE.\n:::\n",
    ),
    "admonitions": (
        '!!! note "A title"\n    Body text.\n\n??? warning\n    Body.\n\n???+ tip ""\n    Body.\n\n=== "Tab"\n    Body.\n',
        '!!! note "A TITLE"\n    BODY TEXT.\n\n??? warning\n    BODY.\n\n???+ tip ""\n    BODY.\n\n=== "TAB"\n    BODY.\n',
    ),
    "bodies after a blank line": (
        "!!! note\n\n    Body `x` text.\n\n    - item\n\n    ```\n    code\n    ```\n\n    !!! tip\n\n        Deep.\n\nNext.\n\n    code\n",
        "!!! note\n\n    BODY `x` TEXT.\n\n    - ITEM\n\n    ```\n    code\n    ```\n\n    !!! tip\n\n        DEEP.\n\nNEXT.\n\n    code\n",
    ),
    "bodies of other kinds": (
        '=== "Tab"\n\n    One.\n\n    Two.\n\n??? a\n\n\tTab.\n\n!!! note\n\n    Body.\nNext.\n\n```\n!!! note\n\n    code\n```\n',
        '=== "TAB"\n\n    ONE.\n\n    TWO.\n\n??? a\n\n\tTAB.\n\n!!! note\n\n    Body.\nNEXT.\n\n```\n!!! note\n\n    code\n```\n',
    ),
    "sentences like admonitions": (
        "??? What does it mean\nto you?\n\n!!! Danger ahead\n\n=== Part one ===\n\n!!! Sie sagte \"a\"\n",
        "??? WHAT DOES IT MEAN TO YOU?\n\n!!! DANGER AHEAD\n\n=== PART ONE ===\n\n!!! SIE SAGTE \"A\"\n",
    ),
    "classes": (
        '!!! note inline end "A title"\n    Body.\n\n!!! tip big red "A title"\n    Body.\n\n??? note inline\n    Body.\n\n===+ "Tab"\n    Body.\n',
        '!!! note inline end "A TITLE"\n    BODY.\n\n!!! tip big red "A TITLE"\n    BODY.\n\n??? note inline\n    BODY.\n\n===+ "TAB"\n    BODY.\n',
    ),
    "alerts": ("> [!NOTE]\n> Body\n> text.\n\n> [!tip]- A title\n> Body.\n", "> [!NOTE]\n> BODY TEXT.\n\n> [!tip]- A TITLE\n> BODY.\n"),
    "toml": ('+++\ntitle = "x"\n+++\n\nBody.\n', '+++\ntitle = "x"\n+++\n\nBODY.\n'),
    "yaml": ("---\ntitle: x\n---\nBody.\n", "---\ntitle: x\n---\nBODY.\n"),
    "definitions": ("Term\n: Definition of\n  two lines.\n: Another.\n\nTerm\n\n:   Third.\n", "TERM\n: DEFINITION OF TWO LINES.\n: ANOTHER.\n\nTERM\n\n:   THIRD.\n"),
    "keys": ("Author: Ada\nLast change: today\n\nOne key: in a\nparagraph.\n", "AUTHOR: ADA\nLAST CHANGE: TODAY\n\nONE KEY: IN A PARAGRAPH.\n"),
    "wrapped prose": (
        "They come in: red, green and\nblue. They differ: in\nprice.\n\nOf all men who came there on foot: Ada and\nsee ch. 3: Bob.\n\nLes trois\ncouleurs sont\n: rouge.\n",
        "THEY COME IN: RED, GREEN AND BLUE. THEY DIFFER: IN PRICE.\n\nOF ALL MEN WHO CAME THERE ON FOOT: ADA AND SEE CH. 3: BOB.\n\nLES TROIS COULEURS SONT : ROUGE.\n",
    ),
    "open comments": ("Text <!-- a --> and <!-- more.\n", "TEXT <!-- a --> AND <!-- MORE.\n"),
    "latex": ("\\newpage\n\n\\begin{center}\nText with \\cite[p. 1]{key} here.\n\\end{center}\n", "\\newpage\n\n\\begin{center}\nTEXT WITH \\cite[p. 1]{key} HERE.\n\\end{center}\n"),
    "pipes": ("| a | b \\| c |\n| **d** |e|\n", "| A | B \\| C |\n| **D** |E|\n"),
    "definitions of links": ("See [it][x].\n[x]: https://a.b\n\n[y]: https://c.d\n", "SEE [IT][x].\n[x]: https://a.b\n\n[y]: https://c.d\n"),
    "abbreviations": ("*[HTML]: Hyper text\n[TOC]\n{: .class}\n", "*[HTML]: Hyper text\n[TOC]\n{: .class}\n"),
    "bare signs": ("a > b, c < d, e | f, [g], 2 * 3, C:\\temp\n", "A > B, C < D, E | F, [G], 2 * 3, C:\\TEMP\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_stay(name, end):
    source, expected = (text.replace("\n", end) for text in STRUCTURES[name])
    out, counts = translated(Path("a.md"), source.encode())
    assert out.decode() == expected
    assert counts.untouched.total() == counts.lost == 0


def test_a_sign_that_becomes_markup_is_escaped():
    out, counts = translated(Path("a.md"), b"a * b and c\n", lambda _: [["x *b c* y"]])
    assert out == b"x \\*b c\\* y\n"
    assert counts.untouched.total() == 0
