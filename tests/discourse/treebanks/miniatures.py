"""Hand-made miniature treebanks in the layout of real treebanks."""

import io
import tarfile

DIS = """( Root (span 1 3)
  ( Nucleus (span 1 2) (rel2par span)
    ( Nucleus (leaf 1) (rel2par span) (text _!We left_!) )
    ( Satellite (leaf 2) (rel2par causal-cause) (text _!because it rained ._!) )
  )
  ( Satellite (leaf 3) (rel2par evaluation-comment) (text _!Sad !_!) )
)
"""
RS4 = """<rst><header><relations>
<rel name="causal-cause" type="rst"/><rel name="evaluation-comment" type="rst"/>
</relations></header><body>
<segment id="1" parent="4" relname="span">We left</segment>
<segment id="2" parent="1" relname="causal-cause">because it rained .</segment>
<segment id="3" parent="4" relname="evaluation-comment">Sad !</segment>
<group id="4" type="span" parent="5" relname="span"/>
<group id="5" type="span"/>
</body></rst>
"""


def conllu(start="*We left *because"):
    """CoNLL-U file for the same document. `*` marks the first word in an EDU."""
    lines = []
    for number, sentence in enumerate((f"{start} it rained .", "*Sad !")):
        lines += ["# newpar"] if number else []
        for position, form in enumerate(sentence.split(), start=1):
            misc = "Discourse=x:1->2" if form.startswith("*") else "_"
            lines.append(f"{position}\t{form.strip('*')}\t_\t_\tTAG\t_\t{position - 1}\tdep\t_\t{misc}")
        lines.append("")
    return "\n".join(lines) + "\n"


def splits_md(**documents):
    """The partition file: split → names."""
    parts = [f"## {split}\n\n" + "".join(f"  * {name}\n" for name in names) for split, names in documents.items()]
    return "# Splits\n\nText.\n\n" + "\n".join(parts)


SPLITS = {
    "train": ["GUM_news_a", "GUM_reddit_b", "GUM_bio_gone"],
    "dev": ["GUM_news_c"],
    "test": ["GUM_news_d"],
    "test2": ["GENTLE_e"],
}
NAMES = ("GUM_news_a", "GUM_news_c", "GUM_news_d", "GUM_news_unlisted")


def write_archive(path, members):
    """A tar.gz archive of texts by member name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            data = text.encode("utf-8")
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


def gum_archives(folder, **changes):
    """GUM as fetched. `changes` replaces the text in one kind of file (`conllu`, `dis`)."""
    texts = {"conllu": conllu(), "dis": DIS} | changes
    for archive, inner, suffix in (("dep_conllu", "dep", "conllu"), ("lisp_binary", "rst/lisp_binary", "dis")):
        members = {f"{inner}/{name}.{suffix}": texts[suffix] for name in NAMES}
        write_archive(folder / f"{archive}.tar.gz", members)
    (folder / "splits.md").write_text(splits_md(**SPLITS), encoding="utf-8")
    return folder
