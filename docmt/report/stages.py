"""The stages of the workflow and their rules."""

from collections.abc import Mapping, Sequence

STAGES = {
    "corpora": (
        "fetch_corpus",
        "read_corpus",
        "convert_suite",
        "read_custom",
        "generate_corpus",
        "combine_corpora",
        "count_overlap",
    ),
    "text": (
        "tokenize",
        "learn_truecaser",
        "truecase",
        "learn_bpe",
        "apply_bpe",
        "learn_vocabulary",
        "pack_pipeline",
        "count_roundtrip",
    ),
    "discourse": (
        "read_treebank",
        "train_segmenter",
        "evaluate_segmenter",
        "train_parser",
        "evaluate_parser",
        "annotate",
        "annotate_suite",
        "gather_gold",
        "count_trees",
        "draw_tree",
    ),
    "instances": ("build_instances", "count_instances"),
    "pretraining": (
        "read_monolingual",
        "read_custom_monolingual",
        "combine_monolingual",
        "learn_tagged_vocabulary",
        "build_monolingual_instances",
    ),
    "training": ("train",),
    "decoding": ("translate", "contrast"),
    "evaluation": ("evaluate_translation", "evaluate_contrast", "gather_system", "gather_dataset"),
    "report": ("gather", "study_table", "render"),
}
"""Rules by stage, in the order of the workflow: those of `workflow/rules/{stage}.smk`."""

OTHER = "other"
"""The stage of a rule that is not listed, such as one of the user's own."""

Stages = Mapping[str, Sequence[str]]


def stage_of(rule: str, stages: Stages = STAGES) -> str:
    """The stage of a rule."""
    return next((stage for stage, rules in stages.items() if rule in rules), OTHER)


def place_of(rule: str, stages: Stages = STAGES) -> tuple[int, int, str]:
    """The position of a rule in the workflow, to sort by."""
    stage = stage_of(rule, stages)
    if stage == OTHER:
        return len(stages), 0, rule
    return list(stages).index(stage), list(stages[stage]).index(rule), rule
