"""`docmt init`: create a study folder with the workflow, so that you do not need to clone the repository."""

import logging
import shlex
import shutil
import sysconfig
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from docmt.commands import CommandGroup, SharedFolder
from docmt.errors import UserError

PARTS = ("Snakefile", "workflow", "profiles", "slurm", "config", "environment.yml")
README = """\
# A study with docmt

| command in this folder | |
|---|---|
| `docmt config check my.yaml` | check the configuration and its files |
| `docmt run my.yaml --dry-run` | count the jobs by rule, with a reason |
| `docmt run my.yaml` | run the jobs on all cores, or resume after an interruption |
| `docmt run my.yaml --profile slurm` | run the jobs on a Slurm cluster (adapt `slurm/config.yaml` first) |
| `docmt status` | show training progress and failed jobs |

`my.yaml` contains the study. `results/report/report.html` will contain tables and learning curves, and
`results/report/reader.html` will show translations side by side. To translate a text, run `docmt translate --model
results/DATASET/runs/SYSTEM/seed1/model.pt letter.txt`.

`config/config.yaml` is the demo, and `config/examples/` contains more configurations. You do not need to change
`Snakefile` and `workflow/`. `docmt --help` lists all commands, and `docmt config manual` lists all keys.
"""
NEXT = """{folder} is ready. Next:
  cd {quoted}
  docmt run config/examples/smoke.yaml   # checks the installation in a minute or two
  cp config/config.yaml my.yaml          # edit it, then:
  docmt config check my.yaml && docmt run my.yaml"""
NEXT_WITH_FILES = """{folder}/my.yaml is your study. Next:
  cd {quoted}
  docmt run my.yaml --dry-run   # lists the jobs
  docmt run my.yaml             # runs them; results/report/report.html has the scores"""

log = logging.getLogger(__name__)
command = CommandGroup("init")


@command.default
def init(
    folder: SharedFolder,
    /,
    *,
    train: list[Path] | None = None,
    dev: list[Path] | None = None,
    test: list[Path] | None = None,
    languages: list[str] | None = None,
    form: Annotated[str | None, Parameter(name="--format")] = None,
) -> None:
    """Start a study in a new folder, with your own files or from an example.

    Example:
        docmt init study --train train.en train.de --dev dev.en dev.de --test test.en test.de

    Args:
        folder: new or empty folder.
        train: training documents: source and target file (blank lines between documents), two folders or quoted
            patterns (a file per document), or one file with both languages (TMX, TSV, CSV with column names, ParaDocs).
        dev: validation documents, to choose the best model.
        test: test documents, to score.
        languages: source and target language. Default: taken from the file names.
        form: reader or its settings, for example `{reader: tsv, columns: [2, 3]}` (docs/corpora.md). Default: guessed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists and is not empty: choose a new folder")
    paths = {"train": train, "dev": dev, "test": test}
    study = None
    if any(paths.values()):
        from docmt.cli.new_study import NewStudy  # imported here, because `docmt run` imports this module

        splits = {}
        for name, files in paths.items():
            if not files:
                raise UserError(
                    f"--{name} is missing: a study needs --train, --dev and --test with different documents"
                )
            splits[name] = files
        study = NewStudy(splits, folder, form=form, languages=languages)
    elif languages or form:
        raise UserError("--languages and --format describe your files: also pass --train, --dev and --test")
    source = find_workflow()
    is_new = not folder.exists()
    try:
        for name in PARTS:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (source / name).is_dir():
                shutil.copytree(source / name, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source / name, target)
        (folder / "README.md").write_text(README, encoding="utf-8")
        if study is not None:
            (folder / "my.yaml").write_text(study.yaml, encoding="utf-8")
    except BaseException:
        # Remove a partly written study.
        for path in [folder] if is_new else list(folder.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        raise
    if study is not None:
        print(study.summary)
        for warning in study.warnings:
            log.warning("%s", warning)
    quoted = shlex.quote(str(folder))
    if str(folder).startswith("-"):
        quoted = f"-- {quoted}"
    steps = NEXT_WITH_FILES if study else NEXT
    print(steps.format(folder=folder, quoted=quoted))


def find_workflow() -> Path:
    """Return the workflow folder: the repository, or the installed copy."""
    folders = [Path(__file__).parents[2]]
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):  # or pip install --user
        folders.append(Path(sysconfig.get_path("data", scheme)) / "share/docmt")
    for folder in folders:
        if all((folder / name).exists() for name in PARTS):
            return folder
    raise UserError("docmt was installed without its workflow: install it again, or clone its repository")
