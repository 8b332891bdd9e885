"""Translation memories in TMX."""

from collections.abc import Sequence
from typing import Literal

from typing_extensions import override

from docmt.corpora.file_patterns import matching_files
from docmt.corpora.readers.reader import DocumentCollector, DocumentFormat, Files, FormatName, ReaderResult
from docmt.files import read_text
from docmt.formats.file_segments import MARK
from docmt.formats.markup import Element, draft_of, elements
from docmt.formats.tmx import OPAQUE, read_units, unit_variants


class Tmx(DocumentFormat):
    """A TMX translation memory (role `both`; a pattern such as `*.tmx` reads many): a file is a document."""

    reader: FormatName[Literal["tmx"]]
    document_prop: str | None = None
    """Type of the `<prop>` of a unit that names its document; null makes each file one document."""

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, "both")
        collector = DocumentCollector()
        for file_name, file in matching_files(path):
            documents: dict[str, list[tuple[str, str]]] = {}
            text = read_text(file)
            for unit in read_units(text, where=str(file)):
                variants = unit_variants(unit)
                if not all(lang in variants for lang in languages):
                    collector.drop("unit without both languages")
                    continue
                name = file_name.removesuffix(".tmx")
                if self.document_prop is not None:
                    props = (
                        prop
                        for prop in elements(unit.content, "prop")
                        if prop.opening.get("type") == self.document_prop
                    )
                    name = next(("".join(token.text for token in prop.content).strip() for prop in props), "") or name
                src, tgt = (_plain_text(text, variants[lang]) for lang in languages)
                documents.setdefault(name, []).append((src, tgt))
            for name, rows in documents.items():
                collector.add(name, rows)
        return collector.result(if_empty=f"{path}: contains no units in {' and '.join(languages)}")


def _plain_text(text: str, element: Element) -> str:
    """The text of a `seg`."""
    # Inline elements hold code of the original file and go; placeholders such as `%s` are text and stay.
    segment = draft_of(text, element.content, opaque=lambda token: token.name in OPAQUE).segment(0, 0)
    return MARK.sub(lambda found: segment.mark(found[0]).raw if segment.mark(found[0]).is_text else "", segment.text)
