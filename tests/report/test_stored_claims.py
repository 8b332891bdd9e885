"""Scores behind docs/claims.md: what `scripts/list_claims.py --add` stores, replaces and refuses."""

import importlib
from pathlib import Path

import pytest
from score_rows import score, write_scores

from docmt.config.artifacts.report import judged_claims
from docmt.errors import UserError

ROOT = Path(__file__).parents[2]
CONFIG = "claims_context"
VALUES = {"g_transformer": 97.0, "sentence_transformer": 86.0}


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """The script, with an empty folder for scores."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module("list_claims")
    (tmp_path / "stored").mkdir()
    monkeypatch.setattr(module, "SCORES", tmp_path / "stored")
    return module


def write_study(claims, folder, values=VALUES, **changes):
    """Write score files of three seeds, with the fingerprints of the configuration or changed ones."""
    for source in judged_claims(claims.read_study(CONFIG), "claims").sources("scores"):
        dataset, system, seed = Path(source.file).parts[1], Path(source.file).parts[3], Path(source.file).parts[4][4:]
        if system not in values:
            continue
        run = {"dataset": dataset, "seed": int(seed), "groups": "1 2"}
        rows = [
            score(system, values[system] + int(seed), **run | {"test": "selection"}),
            score(system, 95.0 + int(seed), **run | {"test": "pronoun", "metric": "contrastive accuracy"}),
            score(system, 50.0, **run | {"test": "selection", "metric": "chrF"}),
        ]
        path = folder / source.file
        path.parent.mkdir(parents=True, exist_ok=True)
        write_scores(path, rows, **{"commit": "abc", "fingerprint": source.fingerprint} | changes)
    return folder


def stored(claims):
    scores, _ = claims.read_stored(CONFIG)
    return scores


def test_added_scores_are_judged(claims, tmp_path):
    assert dict(claims.sections())[CONFIG].startswith("None of the ")
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "study"))
    table = dict(claims.sections())[CONFIG]
    assert "translates better than the latter" in table
    assert "Source context helps" not in table
    assert "Commit abc." in table
    assert set(stored(claims)["metric"]) == {"s-BLEU", "contrastive accuracy"}  # no claim compares chrF


def test_added_scores_replace_stored_ones(claims, tmp_path):
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "study"))
    first = (tmp_path / f"stored/{CONFIG}.csv").read_bytes()
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "study"))
    assert (tmp_path / f"stored/{CONFIG}.csv").read_bytes() == first
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "other", {"g_transformer": 90.0}))
    means = stored(claims).query("metric == 's-BLEU'").groupby("system")["value"].mean()
    assert means.to_dict() == {"g_transformer": 92.0, "sentence_transformer": 88.0}


def test_scores_of_other_settings_are_refused_or_removed(claims, tmp_path, capsys):
    with pytest.raises(UserError, match="does not belong to this study"):
        claims.add_scores(CONFIG, write_study(claims, tmp_path / "study", fingerprint="0" * 12))
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "study"))
    path = tmp_path / f"stored/{CONFIG}.csv"
    (fingerprint, *_) = stored(claims).query("system == 'g_transformer'")["fingerprint"]
    path.write_text(path.read_text(encoding="utf-8").replace(fingerprint, "0" * 12), encoding="utf-8")
    claims.add_scores(CONFIG, write_study(claims, tmp_path / "other", {"sentence_transformer": 86.0}))
    assert "removed 2 scores of other settings" in capsys.readouterr().out
    assert len(stored(claims)) == 10


def test_histories_of_other_settings_are_removed(claims, tmp_path, capsys):
    config = "claims_plateau"
    for source in judged_claims(claims.read_study(config), "claims").sources("histories"):
        path = tmp_path / "study" / source.file
        path.parent.mkdir(parents=True, exist_ok=True)
        loss = 2.0 if "document_transformer/" in source.file else 1.0
        path.write_text(
            f"step,train_loss,dev_loss,below_uniform_cross\n50,3.0,,\n100,2.5,{loss},0.5\n", encoding="utf-8"
        )
    claims.add_scores(config, tmp_path / "study")
    assert "The validation loss of G-Transformer ends lower" in dict(claims.sections())[config]
    path = tmp_path / f"stored/{config}.histories.csv"
    first = path.read_text(encoding="utf-8")
    assert first.splitlines()[0].startswith("step,dev_loss,below_uniform_cross,")
    claims.add_scores(config, tmp_path / "empty")
    assert path.read_text(encoding="utf-8") == first
    lines = first.splitlines()
    fingerprint = lines[1].rpartition(",")[2]
    path.write_text(first.replace(fingerprint, "0" * 12), encoding="utf-8")
    claims.add_scores(config, tmp_path / "empty")
    assert path.read_text(encoding="utf-8").splitlines() == [line for line in lines if fingerprint not in line]
    assert "removed 1 rows of training histories" in capsys.readouterr().out
