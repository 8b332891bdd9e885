"""Markdown: paragraphs, headings, list items and cells. Code, HTML blocks, link targets and front matter stay.

Beyond CommonMark, these keep their lines: footnotes, admonitions, definitions, keys.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token as MarkdownToken
from typing_extensions import override

from docmt.formats.file_segments import FileSegment, Kind, Mark, SegmentDraft
from docmt.formats.translatable_file import TextFile

FRONT_MATTER = re.compile(
    r"\ufeff?(?P<fence>---|\+\+\+)[ \t]*\r?\n.*?\n(?:(?P=fence)|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL
)
# Lines that stay: `:::note`, `\newpage`, `[id]: url "title"`, `*[HTML]: …`, `[TOC]`, `{: .class}`.
KEPT = re.compile(
    r":{3,}|(?:\\[A-Za-z]+\*?(?:\[[^\[\]]*+\]|\{[^{}]*+\})*+\s*+)++$|\*\[[^\[\]]++\]:|\[\[?_?TOC_?\]?\]\s*$|\{[:.#][^{}]*+\}\s*$"
    r"|\[(?!\^)[^\[\]]++\]:\s*+\S++(?:\s++(?:\".*\"|'.*'|\(.*\)))?\s*$",
    re.IGNORECASE,
)
# Beginnings of lines that stay, before text: `[^1]: `, `: ` of a definition; with a line for themselves: `[!NOTE]`,
# `!!! note "`, `??? note`, `=== "`; further classes of an admonition only before a title, else it is a sentence.
PREFIX = re.compile(
    r"\[\^[^\[\]]++\]:\s*+|:\s++|(?P<line>\[![\w-]+\][+-]?\s*+|===[!+]?\s++\""
    r"|(?:!!!|\?\?\?\+?)\s++(?:[\w-]++(?:\s++inline(?:\s++end)?+)?+\s*+(?:\"|$)|[a-z][a-z -]*+\"(?=[^\"]*+\"\s*$)))"
)
KEY = re.compile(r"[^\W\d_][\w/-]*+(?: [\w/-]++){0,3}:\s+\S")
CELL = re.compile(r"(?:\\.|[^|\\\s])(?:\\.|[^|\\])*")
TARGET = r"\((?:[^()\\]|\\.|\([^()]*+\))*+\)"
INLINE = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`++)[^`]++(?:(?!(?P=ticks)(?!`))`++[^`]++)*+(?P=ticks)(?!`))"
    rf"|(?P<tag>!\[[^\[\]]*+\](?:{TARGET}|\[[^\[\]]*+\])?|\[\^[^\[\]]++\]|<!--(?:(?!<!--|-->).)*+-->|\[[ xX]\](?= ))"
    r"|(?P<value>\\[A-Za-z]+(?:\[[^\[\]]*+\]|\{[^{}]*+\})++|<[A-Za-z][A-Za-z0-9+.-]*+:[^<>\s]*+>|<[^<>\s@]++@[^<>\s]++>|\$[^$\s](?:[^$]*[^$\s])?\$(?!\d))"
    r"|(?P<open>\[)"
    rf"|(?P<close>\](?:{TARGET}|\[[^\[\]]*+\])?)"
    r"|(?P<emphasis>\*{1,3}|_{1,3}|~~)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
)
KINDS: dict[str, Kind] = {"code": "value", "tag": "tag", "value": "value", "open": "open", "close": "close"}
HARD_BREAK = re.compile(r"(?:(?<! ) {2,}+|(?<!\\)(?:\\\\)*+\\)$")
SPECIAL = re.compile(r"[\\`*\[\]<>|]|(?<!\w)_|_(?!\w)|~~")
LINE_BREAK = re.compile(r"(?<![ \\])[ \\]*+\r?\n[ \t>]*+")

NOWHERE = -1
# Levels of `!!! note` inside one another; the file is read once more for each.
DEEPEST = 5

Structure = list[Any]


class MarkdownFile(TextFile):
    """A Markdown file (CommonMark with tables and strikethrough), as one document.

    Each run of inline text that can be found in the lines of its block is a segment. A translation is accepted if the
    parser finds the same blocks, links, code and emphasis in it.
    """

    name = "markdown"
    suffixes = (".md", ".markdown")

    @override
    def find(self) -> list[list[FileSegment]]:
        self._parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._escaped: set[int] = set()
        front = found[0] if (found := FRONT_MATTER.match(self.text)) else ""
        self._references: dict[str, Any] = {}
        # Blank lines replace the front matter, so that the parser counts lines as the file does.
        blocks = self._blocks("\n" * front.count("\n") + self.text[len(front) :])
        starts = list(itertools.accumulate(map(len, self.text.split("\n")), lambda total, n: total + n + 1, initial=0))
        return [list(self._segments(blocks, starts))]

    def _blocks(self, text: str) -> list[MarkdownToken]:
        """The blocks of the file; what is indented below `!!! note` is text, but code for the parser."""
        blocks = self._parser.parse(text, self._references)
        for _ in range(DEEPEST):
            lines = text.split("\n")
            for before, _, block in zip(blocks, blocks[1:], blocks[2:], strict=False):
                titles = (PREFIX.match(line.lstrip()) for line in before.content.split("\n"))
                if block.type == "code_block" and block.map and any(found and found["line"] for found in titles):
                    first, last = block.map
                    if not "".join(lines[last : last + 1]).strip():  # else, the next line would be joined to it
                        lines[first:last] = [re.sub("^(?: {4}|\t)", "", line) for line in lines[first:last]]
            if "\n".join(lines) == text:
                break
            text = "\n".join(lines)
            blocks = self._parser.parse(text, self._references)
        return blocks

    def _segments(self, blocks: list[MarkdownToken], starts: list[int]) -> Iterator[FileSegment]:
        cursor, lines = 0, (0, 0)
        for block in blocks:
            if block.map:
                lines = block.map[0], block.map[1]
            if block.type != "inline" or not block.content:
                continue
            places: list[tuple[int, int]] = []
            cursor = max(cursor, starts[lines[0]])
            for line in block.content.split("\n"):
                start = self.text.find(line.strip(), cursor, starts[lines[1]] if lines[1] < len(starts) else None)
                if start < 0:
                    break
                cursor = start + len(line.strip())
                places.append((start, cursor))
            else:
                yield from self._by_lines(block.content.split("\n"), places)
                continue
            # The parser rewrote it (tabs, escaped bars in cells), so that it has no place: `accepts` refuses it.
            yield FileSegment(block.content, start=NOWHERE)

    def _by_lines(self, lines: list[str], places: list[tuple[int, int]]) -> Iterator[FileSegment]:
        """The segments of a block: special lines are never joined to others."""
        has_keys = len(lines) > 1 and all(KEY.match(line.lstrip()) for line in lines)
        # A definition follows its term; elsewhere, `: ` is prose in French.
        has_definitions = any(line.lstrip().startswith(":") for line in lines[:2])
        group: list[tuple[str, tuple[int, int]]] = []

        def ended() -> Iterator[FileSegment]:
            if group:
                yield self._segment(*map(list, zip(*group, strict=True)))
                group.clear()

        for line, (start, end) in zip(map(str.lstrip, lines), places, strict=True):
            found, is_kept = PREFIX.match(line), bool(KEPT.match(line))
            found = found if has_definitions or not line.startswith(":") else None
            if found or is_kept or line.startswith("|") or has_keys:
                yield from ended()
            if found:
                line, start = line[found.end() :], start + found.end()
                if found[0].endswith('"') and line.rstrip().endswith('"'):
                    line, end = line.rstrip()[:-1], end - 1
            if line.startswith("|"):
                for cell in CELL.finditer(line):
                    text, first = cell[0].rstrip(), start + cell.start()
                    group.append((text, (first, first + len(text))))
                    yield from ended()
            elif not is_kept and start < end:
                group.append((line, (start, end)))
            if is_kept or (found and found["line"]):
                yield from ended()
        yield from ended()

    def _segment(self, lines: list[str], places: list[tuple[int, int]]) -> FileSegment:
        """The lines of a block as one: their ends become blanks, or marks where they break the line."""
        draft, waiting, flat = SegmentDraft(), Counter[str](), ""
        for number, line in enumerate(lines):
            flat += line.strip() if number else line.rstrip()
            if number + 1 < len(lines) and HARD_BREAK.search(line):
                _add_inline(draft, flat[:-1] if line.endswith("\\") else flat, waiting)
                raw = self.text[places[number][1] - line.endswith("\\") : places[number + 1][0]]
                draft.mark(Mark(raw, "tag"))
                flat = ""
            elif number + 1 < len(lines):
                flat += " "
        _add_inline(draft, flat, waiting)
        return draft.segment(places[0][0], places[-1][1])

    @override
    def render(self, segment: FileSegment, text: str) -> str:
        raw = self.text[segment.start : segment.end]
        # A sign that is text in the source without a backslash needs none, unless the parser finds markup then.
        bare = {
            c for c in "\\`*_~[]<>|" if id(segment) not in self._escaped and c in segment.text and f"\\{c}" not in raw
        }
        escaped = SPECIAL.sub(lambda found: "".join(c if c in bare else f"\\{c}" for c in found[0]), text)
        # Tags in the text are markup here, so marks are written as they were, not escaped as in `TextFile.render`.
        return segment.plain(escaped)

    @override
    def accepts(self, segment: FileSegment, filled: str) -> bool:
        if segment.start == NOWHERE:
            return False
        for _ in range(2):
            before, after = (self._structure(self.render(segment, text)) for text in (segment.text, filled))
            if before == after:
                return True
            self._escaped.add(id(segment))
        return False

    def _structure(self, text: str) -> tuple[list[str], Structure]:
        content = LINE_BREAK.sub("  \n", text)
        blocks = self._parser.parse(content, {"references": self._references.get("references", {})})
        inline = [child for block in blocks for child in block.children or []]
        kinds = [
            (child.type, sorted((key, str(value)) for key, value in child.attrs.items()), child.content)
            for child in inline
            if child.type not in ("text", "softbreak", "text_special")
        ]
        # Sorted, because a translation may order its links and emphasis in its own way.
        return [block.type for block in blocks], sorted(kinds)


def _add_inline(draft: SegmentDraft, text: str, waiting: Counter[str]) -> None:
    """Add text with inline markup; `waiting` counts the open runs of emphasis."""
    position, plain = 0, ""
    for found in INLINE.finditer(text):
        plain += text[position : found.start()]
        position = found.end()
        kind, name = _kind(found, text, waiting)
        if kind is None:
            plain += found["escaped"] or found[0]
            continue
        draft.add(plain)
        plain = ""
        draft.mark(Mark(found[0], kind), name=name)
    draft.add(plain + text[position:])


def _kind(found: re.Match[str], text: str, waiting: Counter[str]) -> tuple[Kind | None, str]:
    """The kind of a piece of markup, None for text; and the name shared with its other side."""
    if kind := KINDS.get(found.lastgroup or ""):
        return kind, "link"
    if run := found["emphasis"]:
        before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
        if waiting[run] and before.strip():
            waiting[run] -= 1
            return "close", run
        if after.strip() and not (run[0] == "_" and before.isalnum()):
            waiting[run] += 1
            return "open", run
    return None, ""
