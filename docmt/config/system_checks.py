"""Checks of systems that other rows name: trained, scored, or with output in files of the user."""

from docmt.config.schema import Config
from docmt.errors import UserError
from docmt.settings import look_up


def check_user_output(config: Config, system: str) -> None:
    """Raises UserError when given output is of a test set or suite that no dataset has."""
    row, datasets = config.systems[system], config.datasets
    tests = {f"{name}/{test}": None for name, dataset in datasets.items() for test in dataset.test}
    suites = {f"{name}/{suite}": None for name, dataset in datasets.items() for suite in dataset.suite_names()}
    for test in row.hypotheses:
        look_up(tests, test, where=f"config.systems.{system}.hypotheses", what="test set")
    for suite in row.log_probabilities:
        look_up(suites, suite, where=f"config.systems.{system}.log_probabilities", what="suite")


def check_output(config: Config, system: str, test: str, *, is_suite: bool, where: str) -> None:
    """Raises UserError when the output of a system is given, but not for this test set or suite (`DATASET/TEST`)."""
    row = config.systems[system]
    key = "log_probabilities" if is_suite else "hypotheses"
    if row.has_user_output and test not in getattr(row, key):
        raise UserError(f"{where}: {system!r} has no output for {test!r}; add it to systems.{system}.{key}")


def check_scored(config: Config, system: str, *, where: str) -> None:
    """Raises UserError unless there is such a system, and it is scored."""
    if not look_up(config.systems, system, where=where, what="system").scored:
        raise UserError(f"{where}: {system!r} is not scored; leave it out, or name another system")


def check_trained(config: Config, system: str, *, where: str) -> None:
    """Raises UserError unless docmt trains models of a system."""
    row = look_up(config.systems, system, where=where, what="system")
    if row.has_user_output:
        raise UserError(f"{where}: {system!r} has no model, its output is given; name a system that is trained")
    if row.model_of is not None:
        raise UserError(f"{where}: {system!r} trains no models; name {row.model_of!r}")
