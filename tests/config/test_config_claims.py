"""Claims in a config: required parts of the study, and refused values."""

import pytest
from smoke_study import StudyView, smoke_config, smoke_study, smoke_values

from docmt.errors import UserError

RUNS = "results/smoke/runs"


def with_claims(*claims, **sections):
    rows = {f"claim_{i}": {"statement": "S"} | claim for i, claim in enumerate(claims)}
    return smoke_config({"report": {"claims": rows}, **sections})


BLEU = {"metric": "s-BLEU", "test": "smoke", "comparisons": ["rst_mix > sentence_transformer"]}
ACCURACY = {"metric": "contrastive accuracy", "test": "pronoun", "comparisons": ["rst_mix >= rst_mix_without_trees"]}
LOSS = {"metric": "dev_loss", "comparisons": ["document_transformer > g_transformer_finetuned"]}


def test_claim_needs_only_its_systems():
    artifacts = StudyView(with_claims(BLEU, ACCURACY, LOSS, seeds=[1, 2]))
    assert sorted(artifacts.judged_claims("claims/claim_0").input_files()) == [
        f"{RUNS}/{system}/seed{seed}/scores.json" for system in ("rst_mix", "sentence_transformer") for seed in (1, 2)
    ]
    assert sorted(artifacts.judged_claims("claims/claim_1").input_files()) == [
        f"{RUNS}/{system}/seed{seed}/scores.json" for system in ("rst_mix", "rst_mix_without_trees") for seed in (1, 2)
    ]
    loss = artifacts.judged_claims("claims/claim_2")
    assert loss.input_files("scores") == []
    assert sorted(loss.input_files("histories")) == [
        f"{RUNS}/{system}/seed{seed}/history.csv"
        for system in ("document_transformer", "g_transformer_finetuned")
        for seed in (1, 2)
    ]
    assert set(artifacts.judged_claims("claims").input_files()) == {
        file for i in range(3) for file in artifacts.judged_claims(f"claims/claim_{i}").input_files()
    }


def test_single_claim_reads_its_control():
    artifacts = StudyView(with_claims(BLEU | {"control": "claim_1"}, ACCURACY))
    alone, control = (set(artifacts.judged_claims(f"claims/{name}").input_files()) for name in ("claim_0", "claim_1"))
    assert control < alone
    assert {file.split("/")[3] for file in alone - control} == {"sentence_transformer"}


def test_claims_change_no_fingerprint():
    plain, claimed = smoke_study(), StudyView(with_claims(BLEU))
    assert plain.scores_table("report").fingerprint == claimed.scores_table("report").fingerprint
    assert plain.report().fingerprint != claimed.report().fingerprint, "it shows them"


def test_with_several_datasets_a_claim_must_name_one():
    values = smoke_values()
    other = {"datasets": {"other": values["datasets"]["smoke"]}}
    with pytest.raises(UserError, match="set dataset, or write rst_mix@DATASET"):
        with_claims(BLEU, **other)
    both = BLEU | {"comparisons": ["rst_mix@other - rst_mix > 1"], "dataset": "smoke"}
    artifacts = StudyView(with_claims(both, **other))
    assert [file.split("/")[1] for file in artifacts.judged_claims("claims/claim_0").input_files()] == [
        "smoke",
        "other",
    ]
    few = {"systems": {"rst_mix": {"datasets": ["other"]}, "rst_mix_without_trees": {"datasets": ["other"]}}}
    with pytest.raises(UserError, match="'rst_mix' is not trained on dataset 'smoke'"):
        with_claims(both, **other, **few)
