"""Examples and transcript in docs/translation.md."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from published_models import write_text, write_weights

from docmt.cli.main import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/translation.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\n(.*?)```", PAGE, flags=re.S))


@pytest.fixture
def folder(tmp_path, monkeypatch, overfitted):
    """A folder with the model and the page's files."""
    shutil.copy(overfitted("g_transformer"), tmp_path / "model.pt")
    symbols, _ = write_text(tmp_path / "opus-mt-en-de", "marian")
    write_weights(tmp_path / "opus-mt-en-de", "marian", len(symbols))
    (tmp_path / "document.txt").write_text(FILES["document.txt"], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_examples_run(folder, capsys):
    examples = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    assert len(examples) == 4
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "[['das Tier sieht das Haus', 'ein Kind will das Tier', 'das Kind sieht']]"
    assert lines[1].startswith("1 ")
    assert lines[2] == "missing.pt: no such file"


def test_the_transcript_is_what_happens(folder, capsys):
    calls = re.findall(r"^\$ docmt (.*)\n((?:\d\d:.*\n)*)", PAGE, flags=re.M)
    assert len(calls) == 2
    for call, messages in calls:
        assert main(call.split()) == 0, call
        assert re.sub(r"\d+", "N", capsys.readouterr().err) == re.sub(r"\d+", "N", messages)
    assert (folder / "document.de").read_text(encoding="utf-8") == FILES["document.de"]


def test_importing_docmt_imports_no_torch():
    code = "import sys, docmt; dir(docmt); sys.exit('torch' in sys.modules or not hasattr(docmt, 'UserError'))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(ImportError):
        exec("from docmt import Nothing")


def test_python_m_docmt_works():
    command = [sys.executable, "-m", "docmt", "translate", "--help"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "docmt translate --model model.pt talk.en --out talk.de" in output
