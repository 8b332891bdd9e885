"""Readers of other packages, found through entry points."""

import re
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

from docmt.cli.main import main
from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, merge, read_config_file
from docmt.corpora.catalog import ReadableCorpus
from docmt.corpora.readers.registry import FORMATS, READERS, read
from docmt.errors import UserError

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/corpora.md").read_text(encoding="utf-8").split("## Your own reader")[1]
(METADATA,), (MODULE,) = (re.findall(rf"```{kind}\n(.*?)```", SECTION, flags=re.DOTALL) for kind in ("toml", "python"))
TEXT = "One.\nEins.\n  Two. \nZwei.\n---\n---\nThree.\nDrei.\n"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package of the manual's example, as an installation leaves it on the path; a function breaks it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    points = tomllib.loads(METADATA)["project"]["entry-points"]["docmt.readers"]
    info = tmp_path / "pairs_of_lines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs-of-lines\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[docmt.readers]\n{lines}")
    (tmp_path / "pairs_of_lines.py").write_text(MODULE)
    READERS.__dict__.pop("all", None)
    yield tmp_path / "pairs_of_lines.py"
    READERS.__dict__.pop("all", None)
    sys.modules.pop("pairs_of_lines", None)


def described(reader="pairs", **options):
    splits = {"train": {"files": {"both": "train.txt"}}}
    return {"languages": ["en", "de"], "format": {"reader": reader, **options}, "splits": splits}


def test_a_reader_of_a_package_is_named_and_reads(package, tmp_path):
    (tmp_path / "train.txt").write_text(TEXT)
    form = ReadableCorpus.load(described(mark="---"), where="spec").format
    documents, counts = read({"both": tmp_path / "train.txt"}, form=form, languages=["en", "de"])
    assert [document.sides for document in documents] == [
        (("One.", "Two."), ("Eins.", "Zwei.")),
        (("Three.",), ("Drei.",)),
    ]
    assert (counts.documents, counts.sentences) == (2, 3)


def test_the_settings_of_a_package_are_checked_and_kept(package):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # pydantic warns of what a union does not list
        dumped = ReadableCorpus.load(described(mark="---"), where="spec").model_dump(mode="json")
    assert dumped["format"] == {"reader": "pairs", "mark": "---"}
    with pytest.raises(UserError, match="mark"):
        ReadableCorpus.load(described(mark=3), where="spec")


def test_a_study_reads_again_with_another_version(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(TEXT)
    values = {"corpora": {"custom": {"mine": described()}}}
    config = load_config(merge(read_config_file(ROOT / "config/examples/smoke.yaml"), values))

    def fingerprint():
        return StudyArtifacts(config).corpus("mine", "train", "en-de").fingerprint

    before = fingerprint()
    assert before == fingerprint()
    metadata = tmp_path / "pairs_of_lines-1.0.dist-info/METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    assert fingerprint() != before


def test_the_command_reads_it(package, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.txt").write_text(TEXT.replace("---", "***"))
    (tmp_path / "spec.json").write_text(ReadableCorpus.load(described(), where="spec").model_dump_json())
    options = ["--spec", "@spec.json", "--split", "train", "--languages", "en", "de", "--out", "out/train"]
    assert main(["corpora", "read", *options]) == 0
    assert (tmp_path / "out/train.de").read_text() == "Eins.\nZwei.\nDrei.\n"


def test_a_broken_package_does_not_touch_readers_of_docmt(package):
    package.write_text("raise ValueError('broken')")
    assert ReadableCorpus.load(described("tmx"), where="spec").format.reader == "tmx"
    with pytest.raises(UserError, match=r"reader 'pairs' of package pairs-of-lines: .*ValueError: broken"):
        ReadableCorpus.load(described(), where="spec")


def test_unknown_readers_are_one_line():
    with pytest.raises(UserError, match=r"no reader 'bogus'; known: .*wmt_xml"):
        ReadableCorpus.load(described("bogus"), where="spec")
    assert "pairs" not in FORMATS
