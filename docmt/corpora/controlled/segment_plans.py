"""Plans of how segments open and end, which documents of nested segments follow here and there.

A plan ends with a return to a segment, the target; another segment is the distractor. Together the plans are balanced
against shortcuts. Each rule that names one segment by its place is right as often as it names the distractor: the topic
of the last section, the segment in which the last one was opened, the later of the two by opening or by mention. The
distractor is never the noun named last, nor the topic of the segment that the return ends, because those are never the
antecedent.
"""

from random import Random
from typing import NamedTuple

TARGET, DISTRACTOR = "target", "distractor"


class Move(NamedTuple):
    """`section`, `digress` or `close`, and the role of a segment that it opens."""

    name: str
    role: str = ""


class SegmentPlan(NamedTuple):
    """The kind of a plan, and whether its target is a digression rather than a section.

    shallow: the distractor is the section before that of the target; inner: the section around the target; deep: a
    digression within the one that the return ends, and that digression holds one or two others.
    """

    kind: str
    is_inner: bool


PLANS = (
    SegmentPlan("shallow", False),
    SegmentPlan("deep", False),
    SegmentPlan("inner", True),
    SegmentPlan("deep", True),
    SegmentPlan("inner", True),
    SegmentPlan("deep", True),
)
"""Every plan as often as it has to be for the balance."""

ASIDE = (Move("digress"), Move("close"))


def draw_plan(rng: Random, plan: SegmentPlan) -> list[Move]:
    """The moves of a plan, with a random number of further digressions, which are closed at once."""
    if plan.kind == "deep":
        return [
            *([Move("section"), Move("digress", TARGET)] if plan.is_inner else [Move("section", TARGET)]),
            *ASIDE * rng.randrange(3),
            Move("digress"),
            Move("digress", DISTRACTOR),
            *ASIDE * rng.choice((1, 1, 2)),
            Move("close"),
            Move("close"),
        ]
    aside_in = rng.choice((TARGET, DISTRACTOR, None))
    return [
        Move("section", DISTRACTOR),
        *(ASIDE if aside_in == DISTRACTOR else ()),
        Move("digress" if plan.is_inner else "section", TARGET),
        *(ASIDE if aside_in == TARGET else ()),
        *ASIDE,
    ]
