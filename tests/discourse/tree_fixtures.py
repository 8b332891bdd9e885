"""Random trees, a tree that is deeper than Python's stack, and calls of `docmt discourse`."""

from hypothesis import strategies as st

from docmt.cli.main import run as run_docmt
from docmt.discourse.constituents import join_pair, leaf
from docmt.discourse.dependencies import NO_HEAD


def run(*arguments):
    """Run a command of `docmt discourse`."""
    run_docmt(["discourse", *map(str, arguments)])


@st.composite
def random_heads(draw, max_size=12):
    """Heads of a random tree. Units are attached in random order to earlier units."""
    order = draw(st.permutations(range(draw(st.integers(1, max_size)))))
    heads = [NO_HEAD] * len(order)
    for i, unit in enumerate(order[1:], start=1):
        heads[unit] = order[draw(st.integers(0, i - 1))]
    return heads


def deep_tree(n_edus, *letters, relation="r"):
    """A right-branching tree with these nuclearities from top to bottom."""
    tree = leaf(n_edus - 1)
    for edu in reversed(range(n_edus - 1)):
        tree = join_pair(leaf(edu), tree, letters[edu % len(letters)], relation)
    return tree
