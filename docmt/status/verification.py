"""Damage in the results of a study, also in pages, tables and figures, which no command reads."""

from pathlib import Path

from docmt import checksums
from docmt.config.plan import Plan
from docmt.errors import UserError
from docmt.logs import progress


def verify_results(folder: Path, plan: Plan) -> tuple[int, list[str]]:
    """Compare all files of a study with their records.

    Returns the number of files, and a line for each that is damaged, or lost although the plan needs it.
    """
    from docmt.instances.storage import load_instances  # NumPy, which the rest of `docmt status` does without

    needed = {folder / file for files in plan.targets().values() for file in files}
    records = sorted((folder / "results").glob(f"**/{checksums.FOLDER}/*.sha256"))
    found = map(checksums.file_of, records)
    # Snakemake deletes temporary files, but not their records.
    files = [path for path in found if path.exists() or path in needed]
    problems = []
    for path in progress(files, label="verify", unit="files"):
        try:
            with checksums.open_verified(path):
                if path.name == "manifest.json" and (path.parent / "instances.npy").exists():
                    load_instances(path.parent)
        except FileNotFoundError:
            problems.append(f"{path}: no such file, but there is a record of it: run snakemake, which makes it again")
        except UserError as error:
            problems.append(str(error))
    return len(files), problems
