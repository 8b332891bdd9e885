"""A study on a corpus that mtdata fetches, and that is filtered."""

import pytest
from mtdata_standin import make_python
from studies import Study

from docmt.corpora.documents import read_documents
from docmt.files import read_json


@pytest.mark.slow
def test_a_fetched_and_filtered_corpus_is_made_once(tmp_path):
    row = {"id": "Statmt-europarl-10-deu-eng", "documents": "doc_id", "python": make_python(tmp_path / "one")}
    rules = {"max_test_overlap": 0.5}
    changes = {
        "corpora": {"mtdata": {"europarl": row}, "filters": {"web": rules}},
        "datasets": {"smoke": {"train": ["europarl/all"], "filters": {"train": "web"}}},
    }
    study = Study(tmp_path)
    done = study.run("corpora", changes=changes)
    assert done.returncode == 0, done.stderr
    prefix = tmp_path / "results/smoke/corpora/en-de/train"
    documents = read_documents(prefix, languages=("en", "de"))
    assert [document.id for document in documents] == ["europarl.all/ep-0", "europarl.all/ep-1"]
    assert read_json(prefix.with_suffix(".counts.json"))["sentences_read"] == 6
    # Neither the place of mtdata nor another filter fetches or reads the text again.
    row["python"] = make_python(tmp_path / "two")
    assert "Nothing to be done" in study.run("corpora", changes=changes).stderr
    rules["min_characters"] = 8
    done = study.run("corpora", changes=changes)
    assert done.returncode == 1
    assert "no document passes the filter of europarl.all" in done.stderr + done.stdout
    assert not {"fetch_mtdata:", "corpora_read:"} & set((done.stdout + done.stderr).split())
