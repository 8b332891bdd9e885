"""`docmt config`: check and explain a configuration."""

import argparse
import json
from pathlib import Path

from docmt.cli.options import CommandParser
from docmt.config.loading import load_config_files
from docmt.config.manual import json_schema, manual, replace_manual
from docmt.config.rows import OF_GIVEN_SYSTEMS
from docmt.config.systems import list_runs, look_up, model_settings, training_settings
from docmt.errors import UserError
from docmt.files import atomic_writer, read_text
from docmt.models.presets import SIZES, all_architectures


def add_commands(parser: CommandParser) -> None:
    """Add `check`, `show`, `presets`, `schema` and `manual`."""
    check = parser.add_command("check", run_check, "check configuration files, each by itself")
    check.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML or JSON file")
    summary = "print the full settings of a system's runs as JSON: presets and overrides merged"
    show = parser.add_command("show", run_show, summary)
    show.add_argument("file", type=Path, metavar="FILE", help="YAML or JSON file")
    show.add_argument("system", metavar="SYSTEM", help="name of the system")
    parser.add_command("presets", run_presets, "print sizes and architectures as JSON")
    schema = parser.add_command("schema", run_schema, "print the JSON schema of configuration files")
    schema.add_argument("--out", type=Path, metavar="FILE", help="write it to FILE instead")
    reference = parser.add_command("manual", run_manual, "print the reference of all keys as Markdown")
    reference.add_argument("--into", type=Path, metavar="FILE", help="replace the reference inside FILE instead")


def run_check(options: argparse.Namespace) -> None:
    """Check files. Raises UserError on the first bad key."""
    for file in options.files:
        try:
            config = load_config_files([file])
        except UserError as error:
            raise UserError(str(error) if str(error).startswith(str(file)) else f"{file}: {error}") from None
        n_datasets, n_systems, n_runs = len(config.datasets), len(config.systems), len(list_runs(config))
        print(f"{file}: valid ({n_datasets} datasets, {n_systems} systems, {n_runs} runs)")


def run_show(options: argparse.Namespace) -> None:
    """Print one system's settings."""
    config = load_config_files([options.file])
    row = look_up(config.systems, options.system, where="SYSTEM", what="system")
    if row.is_given:
        print(json.dumps(row.model_dump(include=OF_GIVEN_SYSTEMS), indent=1, ensure_ascii=False))
        return
    settings = {
        "instances": config.instances[row.cutting].model_dump(mode="json"),
        "model": model_settings(config, options.system).model_dump(mode="json"),
        "training": training_settings(config, options.system).model_dump(mode="json"),
        "init": row.model_dump(mode="json")["init"],
    }
    print(json.dumps(settings, indent=1, ensure_ascii=False))


def run_presets(options: argparse.Namespace) -> None:
    """Print the presets."""
    print(json.dumps({"sizes": SIZES, "architectures": all_architectures()}, indent=1))


def run_schema(options: argparse.Namespace) -> None:
    """Print the schema."""
    if options.out is None:
        print(json_schema(), end="")
        return
    with atomic_writer(options.out, checksum=False) as file:
        file.write(json_schema())


def run_manual(options: argparse.Namespace) -> None:
    """Print the reference."""
    if options.into is None:
        print(manual(), end="")
        return
    page = replace_manual(read_text(options.into), where=str(options.into))
    with atomic_writer(options.into, checksum=False) as file:
        file.write(page)
