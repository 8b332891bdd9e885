"""`docmt config`: check and explain a configuration."""

import json
from pathlib import Path
from typing import Annotated

from docmt.commands import CommandGroup, OutFile
from docmt.config.artifacts.base import Study
from docmt.config.artifacts.runs import trained_runs
from docmt.config.artifacts.study import check_user_files
from docmt.config.by_hand import describe_by_hand
from docmt.config.costs import describe_costs
from docmt.config.line_counts import check_corpora, check_line_counts, check_trees
from docmt.config.loading import load_config, read_config_file, read_config_files
from docmt.config.manual import json_schema, manual, replace_manual
from docmt.config.study_rows import USER_OUTPUT_KEYS
from docmt.config.systems import decoding_settings, list_runs, model_settings, trained_system, training_settings
from docmt.errors import UserError
from docmt.files import atomic_writer, read_text
from docmt.models.presets import ARCHITECTURES, SIZES
from docmt.outputs import Output
from docmt.settings import look_up

commands = CommandGroup("config")


@commands.command
def check(*files: Path) -> None:
    """Check a configuration and its data files. Name corpora that cannot be downloaded.

    Data files must exist. The splits and suites of user-supplied corpora are read as in a run. In a split of more than
    8 MB, only the lines of both sides are counted. User-supplied trees must be of the right documents. Files with
    translations and additional references must fit their test sets, if these are user-supplied, too, or have been
    prepared by the study.

    Example:
        docmt config check my.yaml quick.yaml

    Args:
        files: YAML or JSON files. As for `docmt run`, later files override earlier files.
    """
    if not files:
        raise UserError("docmt config check: pass at least one configuration file")
    names = " ".join(map(str, files))
    try:
        config = load_config(read_config_files(files))
        study = Study(config)
        check_user_files(study)
        check_corpora(study)
        check_trees(study)
        check_line_counts(study)
    except UserError as error:
        message = str(error)
        if not message.startswith(tuple(map(str, files))):
            message = f"{names}: {message}"
        raise UserError(message) from None
    counts = {"dataset": len(config.datasets), "system": len(config.systems), "run": len(list_runs(config))}
    words = [f"{n} {noun}{'s' * (n != 1)}" for noun, n in counts.items()]
    n_trained = len(trained_runs(study))
    if n_trained < counts["run"]:
        words[-1] += f", {n_trained} of them with a training"
    print(f"{names}: valid ({', '.join(words)})")
    facts = [*describe_costs(study), *describe_by_hand(study)]
    if facts:
        print("whole configuration:", *facts, sep="\n")


@commands.command
def show(file: Path, system: str, /) -> None:
    """Print a system's settings as JSON, with presets and overrides merged.

    Example:
        docmt config show config/config.yaml g_transformer

    Args:
        file: YAML or JSON file.
        system: system name.
    """
    config = load_config(read_config_file(file))
    row = look_up(config.systems, system, where="SYSTEM", what="system")
    if row.has_user_output:
        settings = row.model_dump(mode="json", include=USER_OUTPUT_KEYS)
    elif row.is_published:
        settings = row.model_dump(mode="json", include={"instances", "init"})
    else:
        settings = {
            "instances": config.instances[row.instances].model_dump(mode="json"),
            "model": model_settings(config, system).model_dump(mode="json"),
            "training": training_settings(config, system).model_dump(mode="json"),
            "decoding": decoding_settings(config, system).model_dump(mode="json"),
            "init": config.systems[trained_system(config, system)].model_dump(mode="json")["init"],
        }
    print(json.dumps(settings, indent=1, ensure_ascii=False))


@commands.command
def presets() -> None:
    """Print sizes and architectures as JSON.

    Example:
        docmt config presets
    """
    print(json.dumps({"sizes": SIZES, "architectures": ARCHITECTURES}, indent=1))


@commands.command
def schema(*, out: OutFile | None = None) -> None:
    """Print the JSON schema for configuration files.

    Example:
        docmt config schema --out config/schema.json

    Args:
        out: file to write. Default: standard output.
    """
    if out is None:
        print(json_schema(), end="")
        return
    with atomic_writer(out) as file:
        file.write(json_schema())


@commands.command(name="manual")
def print_manual(*, into: Annotated[Path | None, Output(keeps_content=True)] = None) -> None:
    """Print the settings reference as Markdown.

    Example:
        docmt config manual

    Args:
        into: page in which to update the reference. Default: standard output.
    """
    if into is None:
        print(manual(), end="")
        return
    page = replace_manual(read_text(into), where=str(into))
    with atomic_writer(into, checksum=False) as file:
        file.write(page)
