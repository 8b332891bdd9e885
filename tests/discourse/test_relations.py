"""Relation inventories."""

import pytest

from docmt.controlled import lexicon
from docmt.controlled.segments import SegmentBuilder
from docmt.controlled.selection import SelectionBuilder
from docmt.discourse.relations import inventory_names, load_inventory
from docmt.errors import UserError


@pytest.mark.parametrize(("name", "n_classes"), [("gum", 15), ("gcdt", 15), ("rst_dt", 18), ("controlled", 8)])
def test_inventories(name, n_classes):
    inventory = load_inventory(name)
    assert len(inventory.classes) == n_classes
    assert list(inventory.classes) == sorted(inventory.classes)
    assert set(inventory.class_of.values()) == set(inventory.classes)


def test_gum_classes_are_the_prefixes():
    inventory = load_inventory("gum")
    for fine, coarse in inventory.class_of.items():
        assert coarse == ("same-unit" if fine == "same-unit" else fine.split("-")[0])


@pytest.mark.parametrize(
    ("fine", "coarse"),
    [
        ("elaboration-object-attribute-e", "Elaboration"),
        ("evaluation-s-e", "Evaluation"),
        ("consequence-n", "Cause"),
        ("Same-Unit", "Same-Unit"),
        ("List", "Joint"),
        ("TextualOrganization", "Textual-Organization"),
        ("Question-Answer", "Topic-Comment"),
        ("circumstance", "Background"),
        ("Temporal-Same-Time", "Temporal"),
        ("Elaboration", "Elaboration"),
    ],
)
def test_rst_dt_suffixes_and_case_do_not_matter(fine, coarse):
    assert load_inventory("rst_dt").coarse(fine) == coarse


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UserError, match="relation 'causal-cuase' is not one of gum; did you mean 'causal-cause'"):
        load_inventory("gum").coarse("causal-cuase")
    with pytest.raises(UserError, match="unknown relation inventory 'gumm'; did you mean 'gum'"):
        load_inventory("gumm")
    assert inventory_names() == ["controlled", "gcdt", "gum", "rst_dt"]


def test_relations_of_the_controlled_corpus_are_all_there():
    inventory = load_inventory("controlled")
    tables = {**SelectionBuilder.relations, **SegmentBuilder.relations}
    used = {
        *(relation for relation, _ in tables.values()),
        *(marker.relation for marker in lexicon.MARKERS),
        *(relation for _, relation in lexicon.CONJUNCTIONS),
    }
    assert len(used) >= 7
    assert {inventory.coarse(relation) for relation in used} == used
