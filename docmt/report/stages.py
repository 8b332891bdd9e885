"""Where a rule stands in the workflow."""

from collections.abc import Mapping, Sequence

OTHER = "other"
"""The stage of a rule that is not listed, such as one of the user's own."""

Stages = Mapping[str, Sequence[str]]
"""The rules of each stage, in the order of the workflow."""


def stage_of(rule: str, stages: Stages) -> str:
    """The stage of a rule."""
    return next((stage for stage, rules in stages.items() if rule in rules), OTHER)


def place_of(rule: str, stages: Stages) -> tuple[int, int, str]:
    """The position of a rule in the workflow, to sort by."""
    stage = stage_of(rule, stages)
    if stage == OTHER:
        return len(stages), 0, rule
    return list(stages).index(stage), list(stages[stage]).index(rule), rule
