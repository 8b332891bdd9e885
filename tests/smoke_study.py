"""The smoke study with changes, as configuration and artifact declarations."""

from functools import partial
from pathlib import Path

from docmt.config.artifacts import corpora, runs, scores, study
from docmt.config.artifacts.base import DECLARATIONS, Study
from docmt.config.loading import load_config, merge, read_config_file

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "config/examples/smoke.yaml"


class StudyView(Study):
    """A study with declarations and lists as attributes, such as `view.model("d", "s", "1")` or `view.artifacts`."""

    def __getattr__(self, name):
        if name in DECLARATIONS:
            return partial(DECLARATIONS[name], self)
        for module in (study, scores, runs, corpora):
            if hasattr(module, name):
                return partial(getattr(module, name), self)
        raise AttributeError(name)

    @property
    def artifacts(self):
        return study.all_artifacts(self)

    @property
    def targets(self):
        return study.targets(study.final_outputs(self))

    @property
    def trained(self):
        return runs.trained_runs(self)

    @property
    def scored(self):
        return runs.scored_runs(self)


def smoke_values(changes=None):
    """Values in the file, with changes."""
    return merge(read_config_file(SMOKE), changes or {})


def smoke_config(changes=None):
    return load_config(smoke_values(changes))


def smoke_study(changes=None):
    return StudyView(smoke_config(changes))
