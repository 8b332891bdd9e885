"""List the files of a study by stage, with the names in workflow rules, inside docs/files.md.

Prints the list. With `--write`, replaces it in docs/files.md (`make docs` does that).
"""

import inspect
import tempfile
from pathlib import Path

from marked_page import print_or_write, replace_between_marks
from snakemake.api import SnakemakeApi
from snakemake.io import strip_wildcard_constraints
from snakemake.settings.types import OutputSettings, ResourceSettings

from docmt.config.artifacts.base import DECLARATIONS
from docmt.config.artifacts.study import STAGES

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/files.md"
NAME = "scripts/list_files.py"
MAX_FILES = 4
"""Maximum number of listed files per rule."""


def outputs_of_rules() -> dict[str, list[str]]:
    """File patterns by rule."""
    with tempfile.TemporaryDirectory() as folder, SnakemakeApi(OutputSettings()) as api:
        workflow = api.workflow(ResourceSettings(), snakefile=ROOT / "Snakefile", workdir=Path(folder))
        # Snakemake's API has the names of rules only.
        rules = workflow._workflow.rules
        return {rule.name: [strip_wildcard_constraints(file) for file in rule.output] for rule in rules}


def listing() -> str:
    """Files by stage, with the descriptions in their declarations."""
    outputs = outputs_of_rules()
    lines: dict[str, list[str]] = {stage: [] for stage in STAGES}
    for declaration in DECLARATIONS.values():
        names = []
        for files in (outputs[rule] for rule in declaration.rules):
            folder = files[0].rpartition("/")[0]
            short = [files[0], *(file.removeprefix(f"{folder}/") for file in files[1:MAX_FILES])]
            names += [f"`{name}`" for name in short] + ["…"] * (len(files) > MAX_FILES)
        if names:
            about = (inspect.getdoc(declaration.declare) or "").partition("\n\n")[0].replace("\n", " ")
            lines[declaration.stage].append(f"- {', '.join(dict.fromkeys(names))}: {about}")
    blocks = ["\n".join([f"**{stage.capitalize()}**", "", *lines[stage]]) for stage in lines]
    return "\n\n".join(blocks) + "\n"


def updated_page(page: str) -> str:
    """The page with the current files."""
    return replace_between_marks(page, NAME, listing())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, listing, purpose="List the files of a study.")
