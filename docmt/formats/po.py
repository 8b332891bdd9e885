"""PO catalogs: untranslated and fuzzy messages are filled and marked as fuzzy, translated ones are context."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import polib
from typing_extensions import override

from docmt.errors import UserError
from docmt.formats.file_segments import FileSegment, plain_segment
from docmt.formats.translatable_file import Edit, TextFile, language_of

LINE = re.compile(r"[^\n]*\n|[^\n]+$")
KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*(\".*\")$")
STRING = re.compile(r"\".*\"$")
PAGE = re.compile(r"#:\s*\u2068?(\S+?)(?::\d+)?\u2069?(?:\s|$)")
N_FORMS = re.compile(r"nplurals\s*=\s*0*(\d+)")
SLAVIC = "n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2"
# Plural forms of GNU gettext's manual: languages, number and expression; all others have `PLURAL`.
PLURAL = (2, "n != 1")
PLURALS = {
    lang: forms
    for langs, *forms in (
        ("id ja ko lo ms my km th vi yue zh", 1, "0"),
        ("fr", 2, "n > 1"),
        ("be bs hr ru sr uk", 3, SLAVIC),
        ("cs sk", 3, "n==1 ? 0 : n>=2 && n<=4 ? 1 : 2"),
        ("pl", 3, SLAVIC.replace("n%10==1 && n%100!=11", "n==1")),
        ("lt", 3, "n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2"),
        ("lv", 3, "n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2"),
        ("ro", 3, "n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2"),
        ("ga", 3, "n==1 ? 0 : n==2 ? 1 : 2"),
        ("sl", 4, "n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3"),
        ("ar", 6, "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5"),
    )
    for lang in langs.split()
}


@dataclass
class _Message:
    """A message.

    Attributes:
        page: the file of its first reference.
        flags: start of the line with its flags.
        strings, places: its strings, and the places of the translations, by keyword.
        first: start of its first keyword.
    """

    page: str = ""
    flags: int | None = None
    is_fuzzy: bool = False
    strings: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    first: int = -1

    @property
    def is_open(self) -> bool:
        """Whether a translation is missing or fuzzy."""
        return self.is_fuzzy or not all(self.strings[key] for key in self.places)


class PoFile(TextFile):
    """A PO file: the messages of a page (the file of the first `#:` reference) are a document.

    polib reads and writes catalogs, too, but wraps and orders them anew; here only filled messages change.
    """

    name = "po"
    suffixes = (".po", ".pot")

    @override
    def find(self) -> list[list[FileSegment]]:
        messages = list(_messages(self.text, self.where))
        self._header = next(
            (m for m in messages if m.strings.get("msgid") == "" and "msgctxt" not in m.strings), _Message()
        )
        # The header is the message with an empty `msgid`; it declares the language and the number of plural forms.
        declared = self._header.strings.get("msgstr", "")
        fields = {key: value.strip() for key, _, value in (line.partition(":") for line in declared.split("\n"))}
        self.languages.check(fields.get("X-Source-Language"), fields.get("Language"), where=self.where)
        has_translations = any(m.strings[key] for m in messages if m is not self._header for key in m.places)
        is_template = self._header.is_fuzzy or not has_translations or "nplurals=INTEGER" in declared
        is_template |= "charset=CHARSET" in declared
        self._new_header = self._filled_header(declared, fields) if declared and is_template else declared
        counted = N_FORMS.search(self._new_header)
        if counted and len(counted[1]) > 1:  # as text, because Python refuses to read thousands of digits
            raise UserError(f"{self.where}: nplurals is {counted[1][:9]}, but no language has more than 6 forms")
        self._n_forms = int(counted[1]) if counted else 0
        self._open: list[tuple[_Message, dict[str, FileSegment]]] = []
        pages: dict[str, list[FileSegment]] = defaultdict(list)
        for message in messages:
            texts = {key: text for key, text in message.strings.items() if key in ("msgid", "msgid_plural") and text}
            segments = {key: plain_segment(text, is_wanted=message.is_open) for key, text in texts.items()}
            pages[message.page] += segments.values()
            if segments and message.is_open:
                self._open.append((message, segments))
        return list(pages.values())

    def _filled_header(self, header: str, fields: dict[str, str]) -> str:
        """The header of a template with the encoding, the language and its plural forms, where it lacks them."""
        n_forms, plural = PLURALS.get(language_of(self.languages.tgt), PLURAL)
        is_bare = "charset=CHARSET" in header
        new = {} if fields.get("Language") and not is_bare else {"Language": self.languages.tgt}
        if is_bare or not N_FORMS.search(header):
            new["Plural-Forms"] = f"nplurals={n_forms}; plural={plural};"
        kept = header.replace("charset=CHARSET", "charset=UTF-8").split("\n")
        kept = [line for line in kept if line and line.partition(":")[0] not in new]
        return "".join(f"{line}\n" for line in [*kept, *(f"{key}: {value}" for key, value in new.items())])

    @override
    def edits(self) -> Iterable[Edit]:
        end = "\r\n" if "\r\n" in self.text else "\n"
        header = self._header
        if self._new_header != header.strings.get("msgstr", ""):
            yield *header.places["msgstr"], _written("msgstr", self._new_header, end)
            if header.flags is not None:
                stop = self.text.index("\n", header.flags) + 1
                flags = re.sub(r",\s*fuzzy\b", "", self.text[header.flags : stop])
                yield header.flags, stop, flags if flags.strip() != "#" else ""
        for message, segments in self._open:
            if not any(segment.has_letters for segment in segments.values()):
                continue
            # Editors find what is fuzzy: translations to review, and messages that could not be translated.
            if not message.is_fuzzy and message.flags is not None:
                place = message.flags + len("#,")
                yield place, place, " fuzzy,"
            elif not message.is_fuzzy:
                yield message.first, message.first, f"#, fuzzy{end}"
            texts = {key: s.filled if s.has_letters else s.text for key, s in segments.items()}
            new = {key: self.render(segments[key], text) for key, text in texts.items() if text is not None}
            if len(new) < len(segments):  # all forms of a message or none
                continue
            start, stop = min(message.places.values())[0], max(message.places.values())[1]
            forms = {"msgstr": new.get("msgid", "")}
            if "msgid_plural" in new:
                # The first of several plural forms is the singular, as in most languages; reviewers check the rest.
                n = self._n_forms or len(message.places)
                forms = {f"msgstr[{i}]": new["msgid_plural"] if i or n == 1 else forms["msgstr"] for i in range(n)}
            yield start, stop, "".join(_written(key, text, end) for key, text in forms.items())


def _written(key: str, text: str, end: str) -> str:
    """A string as gettext writes it: one of several lines starts with an empty one."""
    lines = LINE.findall(text) or [""]
    strings = [f'"{polib.escape(line)}"' for line in (["", *lines] if len(lines) > 1 else lines)]
    return f"{key} {end.join(strings)}{end}"


def _messages(text: str, where: str) -> Iterator[_Message]:
    """The messages of a PO file, except obsolete ones."""
    message, key, position = _Message(), "", 0
    for number, found in enumerate(LINE.finditer(text), start=1):
        start = found.start() + (position == 0 and text.startswith("\ufeff"))
        position = found.end()
        line = text[start:position].strip()
        keyword = KEYWORD.match(line)
        # A message ends where something follows its `msgstr` that is neither a string nor another plural form.
        begins = not STRING.match(line) and not (keyword and key and not key.startswith("msgstr"))
        if begins and key.startswith("msgstr") and not (keyword and keyword[1].startswith("msgstr")):
            yield message
            message, key = _Message(), ""
        if not line or line.startswith("#~"):
            message = message if key else _Message()
        elif line.startswith("#,"):
            message.flags = start if message.flags is None else message.flags
            message.is_fuzzy |= "fuzzy" in re.split(r"[,\s]+", line)
        elif line.startswith("#"):
            message.page = message.page or (page[1] if (page := PAGE.match(line)) else "")
        elif keyword and keyword[1] in message.strings:
            raise UserError(f"{where}: line {number} has a second {keyword[1]} of one message: msgstr is missing")
        elif keyword or (key and STRING.match(line)):
            key, string = (keyword[1], keyword[2]) if keyword else (key, line)
            message.first = start if message.first < 0 else message.first
            message.strings[key] = message.strings.get(key, "") + polib.unescape(string[1:-1])
            if key.startswith("msgstr"):
                message.places[key] = message.places.get(key, (start, position))[0], position
        else:
            raise UserError(f"{where}: line {number} is not part of a PO message: {line[:40]!r}")
    if key and not message.places:
        raise UserError(f"{where}: the last message has no msgstr")
    if key:
        yield message
