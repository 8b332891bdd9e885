"""RST-DT, the RST Discourse Treebank (Carlson et al. 2002; LDC2002T07, licensed).

Each document is a `.dis` file. Next to it, `NAME.edus` holds one EDU per line, and `NAME.out` or `NAME.txt` the running
text, one sentence per line, with a blank line between paragraphs. Texts are tokenized here, one EDU at a time.

Where there is no running text, a sentence ends with an EDU that ends in a period, question mark or exclamation mark, or
at the mark `<P>`, which ends a paragraph.
"""

from collections import Counter
from pathlib import Path

from docmt.discourse.documents import DiscourseDocument
from docmt.discourse.relations import load_inventory
from docmt.discourse.treebanks.brackets import parse_brackets
from docmt.discourse.treebanks.edu_alignment import GUESSED, PARAGRAPH_LEVEL, SENTENCE, assemble, ends_sentence
from docmt.discourse.treebanks.treebank import Treebank, TreebankDocument, check_relations
from docmt.discourse.treebanks.treebank_files import RstFile, TreebankFile, by_name, read_files
from docmt.errors import UserError

FOLDERS = {"TRAINING": "train", "TEST": "test"}
DEV_EVERY = 10
"""The treebank has no development split: the last of every ten training documents, sorted by name, forms it."""
PARAGRAPH = "<P>"


def read_rst_dt(folder: Path) -> Treebank:
    """Read the documents of the folders TRAINING and TEST."""
    trees = by_name(read_files(folder, archive="rst_dt", suffix=".dis"))
    edus = _beside(folder, ".edus")
    texts = _beside(folder, ".txt") | _beside(folder, ".out")
    notes: Counter[str] = Counter()
    treebank = Treebank("rst_dt", {"train": [], "dev": [], "test": []})
    for file in (trees[name] for name in sorted(trees)):
        split = FOLDERS.get(file.folder)
        if split is None:
            treebank.leave_out(file.name, reason="in neither of the folders TRAINING and TEST")
            continue
        name = file.name.removesuffix(".out")
        rst = parse_brackets(file.text, where=file.where)
        treebank.note(rst)
        check_relations(rst.tree, load_inventory("rst_dt"), where=file.where)
        document = _document(name, rst, edus.get(name), texts.get(name), notes)
        treebank.splits[split].append(TreebankDocument(document))
    train = treebank.splits["train"]
    treebank.splits["dev"] = train[DEV_EVERY - 1 :: DEV_EVERY]
    del train[DEV_EVERY - 1 :: DEV_EVERY]
    treebank.notes.update(notes)
    return treebank


def _beside(folder: Path, suffix: str) -> dict[str, TreebankFile]:
    try:
        files = read_files(folder, archive="rst_dt", suffix=suffix)
    except UserError:
        return {}
    return {file.name.removesuffix(".out"): file for file in files}


def _document(
    name: str, rst: RstFile, edus: TreebankFile | None, text: TreebankFile | None, notes: Counter[str]
) -> DiscourseDocument:
    parts = [part.replace(PARAGRAPH, " ") for part in rst.texts]
    if edus is not None:
        lines = [line for line in edus.text.split("\n") if line.strip()]
        for number, (line, part) in enumerate(zip(lines, parts, strict=False), start=1):
            if _characters(line.replace(PARAGRAPH, " ")) != _characters(part):
                raise UserError(f"{edus.where}: line {number} is {line!r}, but EDU {number} of the tree is {part!r}")
        if len(lines) != len(parts):
            raise UserError(f"{edus.where}: {len(lines)} EDUs, but the tree has {len(parts)}")
    if text is None:
        ends = [PARAGRAPH_LEVEL * (PARAGRAPH in part) or ends_sentence(part) for part in rst.texts]
        notes[GUESSED] += 1
    else:
        ends = _ends(parts, text, notes)
    return assemble(name, parts, ends, rst, lang="en")


def _ends(parts: list[str], text: TreebankFile, notes: Counter[str]) -> list[int]:
    """Tell whether a sentence (1) or a paragraph (2) ends after each EDU, from the lines of the running text."""
    levels: dict[int, int] = {}
    position, characters = 0, []
    for line in text.text.split("\n"):
        if not line.strip():
            levels[position] = PARAGRAPH_LEVEL
            continue
        characters.append(_characters(line))
        position += len(characters[-1])
        levels[position] = SENTENCE
    if "".join(characters) != "".join(map(_characters, parts)):
        raise UserError(
            f"{text.where}: not the text of the EDUs: take the file of the same edition, or remove it to have "
            "sentences end where EDUs end in . ? or !"
        )
    ends, position = [], 0
    for part in parts:
        position += len(_characters(part))
        ends.append(levels.pop(position, 0))
    levels.pop(0, None)
    notes["line ends inside an EDU, which are no ends of sentences"] += len(levels)
    return ends


def _characters(text: str) -> str:
    return "".join(text.split())
