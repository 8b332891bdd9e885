"""Resources of rules."""

from collections.abc import Callable

from docmt.config.fingerprints import Wildcards


def growing(amount: int) -> Callable[[Wildcards, int], int]:
    """A resource of a rule that is `amount` at the first attempt, twice that at the second, and so on.

    Attempts after the first are those that a profile or `--retries` asks for: each is a new job of the cluster.
    """

    def grown(wildcards: Wildcards, attempt: int) -> int:
        return amount * attempt

    return grown
