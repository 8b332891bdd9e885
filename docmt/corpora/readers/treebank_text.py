"""The sentences of a treebank in CoNLL-U."""

from collections.abc import Sequence
from typing import Literal

from typing_extensions import override

from docmt.corpora.readers.parallel_files import SideDocument, SideFile, align
from docmt.corpora.readers.reader import DocumentFormat, Files, FormatName, ReaderResult
from docmt.corpora.readers.tar_files import read_members
from docmt.errors import UserError

DOCUMENT = "# newdoc id = "
SENTENCE = "# text = "


class Conllu(DocumentFormat):
    """A tar (or tar.gz) of CoNLL-U files, role: the language. Documents are at `# newdoc id`, sentences at `# text`."""

    n_languages = (1,)

    reader: FormatName[Literal["conllu"]]

    @override
    def read(self, files: Files, languages: Sequence[str]) -> ReaderResult:
        path = self.pick(files, languages[0])
        documents: list[SideDocument] = []
        for member, content in read_members(path, ".conllu", what="CoNLL-U"):
            n_before = len(documents)
            for number, line in enumerate(content.split("\n"), start=1):
                if line.startswith(DOCUMENT):
                    documents.append(SideDocument(line.removeprefix(DOCUMENT) or "unnamed", number))
                elif line.startswith(SENTENCE):
                    if len(documents) == n_before:
                        raise UserError(f"{path}:{member}: a sentence comes before the first `{DOCUMENT.strip()}`")
                    documents[-1].add(line.removeprefix(SENTENCE), line=number)
        return align([SideFile(path, documents)])
