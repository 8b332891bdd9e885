"""The smoke study, with changes on top, as the configuration and the declarations of its artifacts."""

from pathlib import Path

from docmt.config.artifacts.report import StudyArtifacts
from docmt.config.loading import load_config, merge, read_config_file

ROOT = Path(__file__).parents[1]
SMOKE = ROOT / "config/examples/smoke.yaml"


def smoke_values(changes=None):
    """What the file says, with changes on top."""
    return merge(read_config_file(SMOKE), changes or {})


def smoke_config(changes=None):
    return load_config(smoke_values(changes))


def smoke_study(changes=None):
    return StudyArtifacts(smoke_config(changes))
