"""Judge the papers' claims by the scores in docs/experiments/claims, inside docs/claims.md.

    python scripts/list_claims.py                                     # print the tables
    python scripts/list_claims.py --write                             # replace them in docs/claims.md (`make docs`)
    python scripts/list_claims.py --add claims_context --from STUDY   # add scores from a study folder first

CONFIG.csv contains the scores of config/examples/controlled/CONFIG.yaml that its claims compare, like `scores.csv`, and
CONFIG.histories.csv the training histories. Claims without scores of all their systems are left out.
"""

import argparse
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pandas as pd
from marked_page import replace_between_marks

from docmt.config.artifacts.base import Study
from docmt.config.artifacts.report import judged_claims
from docmt.config.loading import load_config, read_config_file
from docmt.report.claims.judging import Verdict, claims_table
from docmt.report.input_files import History, gather_scores, read_histories, read_scores_table
from docmt.report.markup import to_markdown
from docmt.report.score_files import KEY
from docmt.report.tables import Table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/claims.md"
NAME = "scripts/list_claims.py"
SCORES = ROOT / "docs/experiments/claims"
CONFIGS = ("claims", "claims_plateau", "claims_context", "claims_surprises")
DROPPED = ["low", "high", "chance", "versions"]
"""Columns of `scores.csv` that no claim needs."""
HISTORY_METRICS = ("dev_loss", "below_uniform_cross")
"""Columns of training histories that claims compare."""
BREAK = "¶"
"""A line break in a cell, until the table is Markdown."""
RUN = ["dataset", "system", "seed"]


def read_study(config: str) -> Study:
    """Return the study of a configuration with claims."""
    return Study(load_config(read_config_file(ROOT / f"config/examples/controlled/{config}.yaml")))


def sections() -> Iterator[tuple[str, str]]:
    """Yield the generated parts of the page: their names and Markdown."""
    scores: dict[str, pd.DataFrame] = {}
    tables: dict[str, Table] = {}
    for config in CONFIGS:
        scores[config], histories = read_stored(config)
        table = claims_table(scores[config], histories, read_study(config).config.report)
        assert table is not None, "each configuration has claims"
        tables[config] = table
    yield "overview", overview(tables)
    for config in CONFIGS:
        yield config, judged_table(tables[config], scores[config])


def overview(tables: Mapping[str, Table]) -> str:
    """Return the numbers of verdicts by configuration as a Markdown table."""
    frames = [table.frame.assign(configuration=f"`{config}.yaml`") for config, table in tables.items()]
    claims = pd.concat(frames, ignore_index=True)
    counts = pd.crosstab(claims["configuration"], claims["Verdict"], margins=True, margins_name="all")
    counts = counts.reindex(columns=[*get_args(Verdict), "all"], fill_value=0)
    corrected = claims.loc[claims["Corrected"] == claims["Verdict"], "Verdict"].value_counts()
    lines = [f"| configuration | {' | '.join(counts.columns)} |", "|---" * (1 + len(counts.columns)) + "|"]
    for name, row in counts.iterrows():
        lines.append(f"| {name} | {' | '.join(map(str, row))} |")
    remaining = ", ".join(f"{corrected.get(verdict, 0)} {verdict}" for verdict in ("supported", "refuted"))
    return "\n".join(lines) + f"\n\nAfter Holm's correction: {remaining}.\n"


def judged_table(table: Table, scores: pd.DataFrame) -> str:
    """Return the judged claims of a configuration, with the commits of their scores and the number of other claims."""
    judged = table.frame[table.frame["Verdict"] != "not run"].copy()
    n_others = len(table.frame) - len(judged)
    if judged.empty:
        return f"None of the {n_others} claims has been run.\n"
    facts = [f"Not run: {n_others} of {len(table.frame)} claims."]
    if not scores.empty:
        facts.insert(0, f"Commit {', '.join(sorted(set(scores['commit'])))}.")
    for column in ("Measured", "Difference"):
        judged[column] = judged[column].str.replace("; ", BREAK)
    text = to_markdown(replace(table, frame=judged)).replace(BREAK, "<br>")
    # Cells are too long to be aligned in the source.
    text = re.sub(" {2,}", " ", re.sub("-{4,}", "---", text))
    return f"{text}\n\n{' '.join(facts)}\n"


def read_stored(config: str) -> tuple[pd.DataFrame, list[History]]:
    """Return the stored scores and training histories of a configuration. Empty without files."""
    path = SCORES / f"{config}.csv"
    scores = read_scores_table(path) if path.exists() else gather_scores([])
    histories = []
    path = SCORES / f"{config}.histories.csv"
    if path.exists():
        for (dataset, system, seed), table in pd.read_csv(path).groupby(RUN):
            histories.append(History(dataset, system, seed, table.drop(columns=[*RUN, "fingerprint"])))
    return scores, histories


def add_scores(config: str, folder: Path) -> None:
    """Add the finished runs in a study folder. What is stored of other settings than today's is removed."""
    study = read_study(config)
    needed = judged_claims(study, "claims")
    fingerprints = [source.fingerprint for source in needed.sources("scores")]
    stored, _ = read_stored(config)
    is_current = stored["fingerprint"].isin(fingerprints)
    if not is_current.all():
        print(f"{config}: removed {len(stored) - is_current.sum()} scores of other settings")
    files = [folder / file for file in needed.input_files("scores")]
    added = gather_scores([file for file in files if file.exists()], fingerprints=fingerprints)
    claims = study.config.report.claims.values()
    compared = {(claim.metric, claim.test) for claim in claims}
    added = added[[pair in compared for pair in zip(added["metric"], added["test"], strict=True)]]
    scores = pd.concat([added, stored[is_current]]).drop_duplicates(KEY).sort_values(KEY)
    scores.drop(columns=DROPPED).to_csv(SCORES / f"{config}.csv", index=False, lineterminator="\n")
    print(f"{config}: {len(scores)} scores of {len(scores[RUN].drop_duplicates())} runs")

    planned = []
    tables = []
    for source in needed.sources("histories"):
        planned.append(source.fingerprint)
        for history in read_histories(filter(Path.exists, [folder / source.file])):
            columns = [name for name in ("step", *HISTORY_METRICS) if name in history.table]
            table = history.table[columns].dropna(subset=columns[1:], how="all")
            tables.append(table.assign(**history.run, fingerprint=source.fingerprint))
    path = SCORES / f"{config}.histories.csv"
    if path.exists():
        stored = pd.read_csv(path, dtype={"fingerprint": str})
        is_current = stored["fingerprint"].isin(planned)
        if not is_current.all():
            print(f"{config}: removed {len(stored) - is_current.sum()} rows of training histories of other settings")
        tables.append(stored[is_current])
    if tables:
        rows = pd.concat(tables).drop_duplicates([*RUN, "step"]).sort_values([*RUN, "step"])
        rows.to_csv(path, index=False, lineterminator="\n")


def updated_page(page: str) -> str:
    """The page with the current tables."""
    for name, text in sections():
        page = replace_between_marks(page, f"{NAME} {name}", text)
    return page


def main() -> None:
    """Read the command line, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replace the tables in docs/claims.md")
    parser.add_argument("--add", choices=CONFIGS, help="add the scores of this configuration")
    parser.add_argument("--from", type=Path, dest="folder", help="study folder with the scores")
    arguments = parser.parse_args()
    if (arguments.add is None) != (arguments.folder is None):
        parser.error("--add and --from need each other")
    if arguments.add:
        add_scores(arguments.add, arguments.folder)
    if arguments.write:
        PAGE.write_text(updated_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        for name, text in sections():
            print(f"{name}\n\n{text}")


if __name__ == "__main__":
    main()
