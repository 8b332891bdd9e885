"""`docmt run` calls Snakemake once. The documentation shows correct calls of Snakemake."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_args
from snakemake.utils import available_cpu_count

from docmt.cli.main import main
from docmt.cli.run import MERGED_DRY_RUN, TARGETS, find_profiles
from docmt.config.artifacts.study import STAGES
from docmt.config.loading import load_config, read_change, read_config_files
from docmt.errors import UserError
from docmt.model_owners import MERGED, MERGED_HEAD
from docmt.snakemake import LOCKS, last_configuration
from docmt.snakemake_messages import JOB_LINES

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "config/examples/smoke.yaml"
ALL = available_cpu_count()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Options that Snakemake parses when `docmt run` calls it in an empty folder."""

    class CalledError(BaseException):
        """Replaces the start of a new program."""

    def execute(words, **keywords):
        if words[:3] != [sys.executable, "-m", "snakemake"]:  # nvidia-smi
            raise FileNotFoundError
        raise CalledError(words[3:])

    def call(*words):
        with pytest.raises(CalledError) as caught:
            main(["run", *words])
        return parse_args(caught.value.args[0])[1]

    monkeypatch.setattr(os, "execve", lambda program, words, environment: execute(words))
    monkeypatch.setattr("docmt.cli.run.subprocess.run", execute)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_bytes(SMOKE.read_bytes())
    (tmp_path / "more.yaml").write_text("decoding: {beam_size: 2}\n")
    return call


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("my.yaml", {"targets": set(), "configfile": [Path("my.yaml")], "cores": ALL, "dryrun": False}),
        ("my.yaml corpora text", {"targets": {"corpora", "text"}, "configfile": [Path("my.yaml")]}),
        ("my.yaml corpora -n", {"targets": {"corpora"}, "dryrun": True}),
        ("my.yaml --dry-run results/report/report.html", {"targets": {"results/report/report.html"}, "dryrun": True}),
        ("my.yaml more.yaml train", {"targets": {"train"}, "configfile": [Path("my.yaml"), Path("more.yaml")]}),
        ("my.yaml training --cores 2 -k", {"targets": {"training"}, "cores": 2, "keep_going": True}),
        ("my.yaml all -c3 --forcerun train", {"targets": {"all"}, "cores": 3, "forcerun": {"train"}}),
        ("my.yaml all --set seeds=[2] text", {"targets": {"all", "text"}, "configfile": [MERGED]}),
        ("my.yaml -n --set seeds=[2]", {"targets": set(), "configfile": [MERGED_DRY_RUN]}),
        ("my.yaml --dryrun --set seeds=[2]", {"dryrun": True, "configfile": [MERGED_DRY_RUN]}),
        ("my.yaml --resources gpu=1", {"targets": set(), "cores": ALL}),
        ("my.yaml --jobs 1", {"jobs": 1, "cores": None}),
        (f"my.yaml --profile {ROOT}/slurm", {"profile": [f"{ROOT}/slurm"], "cores": None, "executor": "slurm"}),
        ("training my.yaml", {"targets": {"training"}, "configfile": [Path("my.yaml")]}),
        ("--cores 4 my.yaml", {"targets": set(), "cores": 4, "configfile": [Path("my.yaml")]}),
        ("-j 4 my.yaml -k more.yaml", {"jobs": 4, "configfile": [Path("my.yaml"), Path("more.yaml")]}),
        ("--forcerun train my.yaml", {"forcerun": {"train"}, "configfile": [Path("my.yaml")]}),
        (f"--profile {ROOT}/slurm/config.yaml my.yaml", {"executor": "slurm", "configfile": [Path("my.yaml")]}),
        ("my.yaml --set seeds=[2] --unlock", {"unlock": True, "configfile": [MERGED_DRY_RUN]}),
        ("my.yaml --directory study", {"directory": Path("study"), "configfile": [Path("my.yaml")]}),
    ],
)
def test_snakemake_is_called_rightly(words, expected, called):
    options = vars(called(*words.split()))
    assert str(options["snakefile"]) == str(ROOT / "Snakefile")
    for name, value in expected.items():
        if name == "configfile":
            assert list(map(str, options[name])) == [str(path.absolute()) for path in value]
        else:
            assert (set(options[name]) if isinstance(value, set) else options[name]) == value, name


@pytest.mark.parametrize(
    ("options", "expected"), [("", "1"), ("-k", "1"), ("--printshellcmds", ""), ("--verbose", ""), ("--quiet", "")]
)
def test_message_options_keep_snakemakes_format(options, expected, called, monkeypatch):
    environments = []
    monkeypatch.setattr(os, "execve", lambda program, words, environment: environments.append(environment))
    assert main(["run", "my.yaml", *options.split()]) == 0
    assert [environment[JOB_LINES] for environment in environments] == [expected]


def test_changes_are_recorded_in_the_merged_config(called, tmp_path):
    called("my.yaml", "more.yaml", "--set", "decoding.beam_size=4", "--set", "seeds=[2, 3]")
    text = (tmp_path / MERGED).read_text()
    assert (
        '{"files": ["my.yaml", "more.yaml"], "--set": ["decoding.beam_size=4", "seeds=[2, 3]"]}' in text.splitlines()[0]
    )
    expected = yaml.safe_load(SMOKE.read_text()) | {"seeds": [2, 3]}
    expected["decoding"]["beam_size"] = 4
    assert yaml.safe_load(text) == expected


def test_changes_do_not_reach_a_study_that_runs(called, tmp_path, capsys):
    called("my.yaml", "--set", "seeds=[2]")
    assert f"configuration: {MERGED} (default of `docmt run`" in capsys.readouterr().err
    before = (tmp_path / MERGED).read_bytes()
    (tmp_path / LOCKS).mkdir(parents=True)
    (tmp_path / LOCKS / "0.output.lock").touch()
    assert main(["run", "my.yaml", "--set", "seeds=[3]"]) == 2
    assert "results/config.yaml: Snakemake is running in this folder, with this file" in capsys.readouterr().err
    called("my.yaml", "--set", "seeds=[3]", "-n")
    called("my.yaml", "--set", "seeds=[3]", "--unlock")
    assert (tmp_path / MERGED).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("a=1", {"a": 1}),
        ("a.b=x=y", {"a": {"b": "x=y"}}),
        ("a.b={c: [1, null]}", {"a": {"b": {"c": [1, None]}}}),
        ("rate=1e-4", {"rate": 1e-4}),
        ("a=", {"a": None}),
    ],
)
def test_a_change_is_yaml(change, expected):
    assert read_change(change) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            (change, r"expected KEY=VALUE, for example decoding\.beam_size=4")
            for change in ["a", "=1", "a..b=1", "a.=1"]
        ),
        ("a b=1", "expected KEY=VALUE"),
        ("a=[", "--set a: line 1: "),
        ("a=2024-13-01", "--set a: cannot be read as YAML"),
        ("a={b: 1, b: 2}", "--set a: line 1: "),
    ],
)
def test_what_is_no_change_is_refused(change, message):
    with pytest.raises(UserError, match=message):
        read_change(change)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nosuch.yaml", "nosuch.yaml: no such file"),
        (
            f"{SMOKE} table_1",
            "target 'table_1': not a stage, a rule or a path; did you mean 'results/tables/table_1.txt'?",
        ),
        ("my.yaml corpra", "target 'corpra': not a stage, a rule or a path; did you mean 'corpora'?"),
        ("my.yaml --set decoding.beam_siz=4", "config.decoding.beam_siz: unknown key; did you mean 'beam_size'?"),
        ("--configfile my.yaml", "--configfile: use `docmt run my.yaml`, and --set KEY=VALUE for changes"),
        ("training --configfile=more.yaml", "--configfile: use `docmt run more.yaml`"),
        ("my.yaml --configfiles more.yaml", "--configfiles: use `docmt run my.yaml more.yaml`"),
        ("my.yaml --config seeds=[2]", "--config: use `docmt run my.yaml`, and --set KEY=VALUE for changes"),
        ("my.yaml -C seeds=[2]", "-C: use `docmt run my.yaml`, and"),
        ("my.yaml -sOther", "-sOther is an option of `snakemake`"),
        ("my.yaml --dryrn", "docmt: error: unrecognized arguments: --dryrn"),
        ("my.yaml --cores", "error: argument --cores/-c: expected "),
        ("my.yaml --cores abc", "error: --cores abc: Error parsing number of cores"),
        ("my.yaml --cores -1", "error: --cores -1: must be at least 1"),
        ("my.yaml --jobs x", "error: --jobs x: Error parsing number of jobs"),
        ("my.yaml --profile slrum", "error: --profile slrum: no such profile"),
        ("my.yaml --resources gpus", "error: --resources gpus: "),
        ("my.yaml --resources gpu=x", "error: --resources gpu=x: Resource 'gpu' was given value 'x'"),
        ("my.yaml --set-threads trian=4", "--set-threads trian: no rule has this name; did you mean 'train'?"),
        ("my.yaml --set-resources tran:mem_mb=4", "--set-resources tran: no rule has this name; did you mean"),
        ("", "no configuration: this folder has no previous run"),
        ("training", "no configuration: this folder"),
        ("training nosuch.yaml", "nosuch.yaml: no such file"),
        (
            "missing.yaml --directory new",
            "config.systems.other.hypotheses.smoke/smoke: out.txt: no such file",
        ),
    ],
)
def test_mistakes_are_one_line_without_snakemake(words, message, called, tmp_path, capsys):
    values = yaml.safe_load(SMOKE.read_text())
    values["systems"]["other"] = {"hypotheses": {"smoke/smoke": "out.txt"}}
    (tmp_path / "missing.yaml").write_text(yaml.safe_dump(values))
    assert main(["run", *words.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def documented(program):
    """Documentation lines that call a program, without comments and placeholders."""
    for page in PAGES:
        for line in re.findall(rf"(?:^|[`\s/])({program} [^`\n]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            line = line.split(" #")[0].split("   ")[0].removesuffix(" &")
            if re.search(rf"{program} (-|[a-z]+ -|\S+\.yaml|results/)", line) and "…" not in line and "[" not in line:
                yield pytest.param(line, id=f"{page.name}: {line}")


@pytest.mark.parametrize("line", documented("snakemake"))
def test_no_option_swallows_a_target_in_the_documentation(line):
    """`snakemake --configfile my.yaml corpora` would use the target as a configuration file."""
    options = parse_args(shlex.split(line)[1:])[1]
    for file in options.configfile or []:
        assert file.suffix == ".yaml" or file.name.isupper(), line
    assert {target for target in options.targets if "/" not in target} <= {*TARGETS, *STAGES}


@pytest.mark.parametrize("line", documented("docmt run"))
def test_documented_runs_have_known_targets(line, called, tmp_path):
    for name in re.findall(r"\S+\.yaml", line):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(SMOKE.read_bytes())
    for profile in re.findall(r"--profile (\S+)", line):
        (tmp_path / profile).mkdir(parents=True)
        (tmp_path / profile / "config.yaml").write_bytes((ROOT / "slurm/config.yaml").read_bytes())
    remember_run(tmp_path, SMOKE)
    options = called(*shlex.split(line)[2:])
    assert {target for target in options.targets if "/" not in target} <= {*TARGETS, *STAGES}
    assert options.configfile


def remember_run(folder, *files):
    """Snakemake log of a run."""
    (folder / ".snakemake/log").mkdir(parents=True, exist_ok=True)
    (folder / ".snakemake/log/1.snakemake.log").write_text(
        f"SNAKEMAKE\n  Working directory: {folder}\n  Config file(s): {[*map(Path, files)]}\n"
    )


def test_default_is_the_last_configuration(called, tmp_path, capsys):
    remember_run(tmp_path, tmp_path / "my.yaml", tmp_path / "more.yaml")
    options = called("training")
    assert options.configfile == [tmp_path / "my.yaml", tmp_path / "more.yaml"]
    assert options.targets == ["training"]
    assert "configuration of the last run: my.yaml more.yaml" in capsys.readouterr().err
    assert called("--directory", str(tmp_path)).configfile == options.configfile
    (tmp_path / "more.yaml").rename(tmp_path / "renamed.yaml")
    assert main(["run", "training"]) == 2
    assert "more.yaml: no such file, but the last run in this folder used it: name" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["it's.yaml", 'it\'s "mine".yaml', "back\\slash.yaml"])
def test_last_configuration_can_have_quotation_marks(tmp_path, name):
    remember_run(tmp_path, tmp_path / name)
    assert last_configuration(tmp_path) == [tmp_path / name]


def test_names_of_configuration_files(called, tmp_path):
    (tmp_path / "quick.yaml").write_text("# decoding: {beam_size: 4}\n")
    (tmp_path / "My.YAML").write_bytes(SMOKE.read_bytes())
    assert called("My.YAML", "quick.yaml").configfile == [tmp_path / "My.YAML"]


def test_another_configuration_than_the_last_runs_is_named(called, tmp_path, capsys):
    remember_run(tmp_path, tmp_path / "my.yaml", tmp_path / "more.yaml")
    called("my.yaml", "more.yaml")
    assert "WARNING" not in capsys.readouterr().err
    called("my.yaml")
    assert "but the last run in this folder used my.yaml more.yaml" in capsys.readouterr().err


@pytest.fixture
def merged(called, tmp_path):
    """A study after a run with `--set`. Call it to read the head and the settings of the merged configuration."""
    called("my.yaml", "more.yaml", "--set", "decoding.beam_size=4")
    remember_run(tmp_path, tmp_path / MERGED)

    def read():
        text = (tmp_path / MERGED).read_text()
        head = json.loads(text.splitlines()[0].removeprefix(MERGED_HEAD))
        return head, yaml.safe_load(text)

    return read


def test_edits_count_after_a_change(merged, called, tmp_path, capsys):
    (tmp_path / "more.yaml").write_text("{decoding: {beam_size: 2}, seeds: [5]}\n")
    assert called().configfile == [tmp_path / MERGED]
    assert "configuration of the last run: my.yaml more.yaml --set decoding.beam_size=4\n" in capsys.readouterr().err
    head, values = merged()
    assert head == {"files": ["my.yaml", "more.yaml"], "--set": ["decoding.beam_size=4"]}
    assert (values["seeds"], values["decoding"]["beam_size"]) == ([5], 4)


@pytest.mark.parametrize("file", ["", str(MERGED)])
@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ("seeds=[2]", ["decoding.beam_size=4", "seeds=[2]"]),
        ("decoding.beam_size=3", ["decoding.beam_size=4", "decoding.beam_size=3"]),
        ("decoding.beam_size=4", ["decoding.beam_size=4"]),
    ],
)
def test_changes_accumulate(file, change, changes, merged, called):
    called(*file.split(), "--set", change)
    head, values = merged()
    assert head == {"files": ["my.yaml", "more.yaml"], "--set": changes}
    assert values["decoding"]["beam_size"] == (3 if change.endswith("=3") else 4)


def test_named_files_forget_earlier_changes(merged, called, tmp_path):
    assert called("my.yaml").configfile == [tmp_path / "my.yaml"]
    called("my.yaml", "--set", "seeds=[2]")
    assert merged()[0] == {"files": ["my.yaml"], "--set": ["seeds=[2]"]}


def test_merged_file_replaces_missing_files(merged, called, tmp_path, capsys):
    (tmp_path / "more.yaml").unlink()
    before = merged()
    assert called().configfile == [tmp_path / MERGED]
    assert merged() == before
    error = capsys.readouterr().err
    assert "WARNING more.yaml: no such file: using its content of the last run, from results/config.yaml\n" in error
    called("--set", "seeds=[2]")
    head, values = merged()
    assert head == {"files": ["my.yaml", "more.yaml"], "--set": ["decoding.beam_size=4", "seeds=[2]"]}
    assert values["decoding"]["beam_size"] == 4


def test_warning_names_the_users_files(merged, called, tmp_path, capsys):
    called("my.yaml", "more.yaml", "--set", "seeds=[2]", "-n")
    called(str(MERGED), "-n")
    assert main(["run", "mine.yaml"]) == main(["run", "my.yaml", "--set", "seed=2"]) == 2
    assert main(["status", "mine.yaml"]) == 2
    assert "WARNING" not in capsys.readouterr().err
    assert main(["status", "my.yaml"]) == 0
    assert "using my.yaml, but the last run in this folder used my.yaml more.yaml\n" in capsys.readouterr().err


def test_copied_study_has_its_last_configuration(called, tmp_path):
    remember_run(tmp_path, tmp_path / "my.yaml", "/elsewhere/more.yaml")
    shutil.copytree(tmp_path, tmp_path / "copy")
    assert last_configuration(tmp_path / "copy") == [tmp_path / "copy/my.yaml", Path("/elsewhere/more.yaml")]


def test_null_removes_a_row(called, tmp_path):
    removed = {"rst_mix_without_trees", "rst_mix"}
    (tmp_path / "more.yaml").write_text("{systems: {rst_mix: null}, report: {figures: {figure_2: null}}}\n")
    called("my.yaml", "more.yaml", "--set", "systems.rst_mix_without_trees=null")
    systems = load_config(read_config_files([tmp_path / MERGED])).systems
    assert systems.keys() == yaml.safe_load(SMOKE.read_text())["systems"].keys() - removed


@pytest.mark.slow
def test_interrupted_and_locked_runs_are_explained(tmp_path):
    words = [sys.executable, "-m", "docmt", "run", str(SMOKE), "corpora", "--cores", "1"]
    # The job ends with an error after a second, as a training that saves.
    (tmp_path / "docmt").write_text("#!/bin/sh\ntrap 'sleep 1; exit 130' INT\nwhile :; do sleep 0.2; done\n")
    (tmp_path / "docmt").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    with subprocess.Popen(
        words, cwd=tmp_path, env=environment, text=True, stderr=subprocess.PIPE, start_new_session=True
    ) as first:
        assert first.stderr is not None
        assert any("[1/7] controlled_generate" in line for line in first.stderr)
        second = subprocess.run(words, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
        os.killpg(first.pid, signal.SIGINT)
        lines = first.stderr.read().splitlines()
    assert second.returncode == 1
    assert second.stderr.splitlines()[-1].startswith(f"docmt: error: another run is at work in {tmp_path}: wait until")
    assert "LockException" not in second.stderr
    assert first.returncode == 1
    assert lines[-2:] == [
        "docmt: stopping, up to 3 minutes on a cluster; trainings save a checkpoint first",
        "docmt: stopped: 0 of 70 results are made; the same command resumes",
    ]
    assert "Error" not in "".join(lines)
    logs = "".join(log.read_text() for log in (tmp_path / ".snakemake/log").glob("*.log"))
    assert "Error in rule controlled_generate" in logs


@pytest.mark.slow
def test_errors_of_jobs_do_not_quote_settings(tmp_path):
    call = [sys.executable, "-m", "docmt", "run", str(SMOKE), "corpora", "--cores", "1", "--set", "seeds=[2]"]
    (tmp_path / "docmt").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "docmt").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(call, cwd=tmp_path, env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    *_, error, last = done.stderr.splitlines()
    assert error.startswith("docmt: controlled_generate failed: no error in the log (killed? disk full?)")
    assert last == "docmt: 0 of 70 results are made; the same command resumes; `docmt status` shows what failed"
    assert len(re.findall(r"^[\d:]{8} failed: controlled_generate smoke", done.stderr, re.MULTILINE)) == 1
    for words in ("Error in rule", "RuleException", "Exiting because", "====", "n_train_documents"):
        assert words not in done.stderr
    (log,) = (tmp_path / ".snakemake/log").glob("*.log")
    messages = log.read_text()
    assert "docmt controlled generate --settings '{…}' --out" in messages
    assert '"n_train_documents"' not in messages[messages.index("Error in rule") :]


def test_gpus_limit_the_jobs_of_this_machine_only(called, monkeypatch):
    monkeypatch.setattr("docmt.cli.run.visible_gpus", lambda: ["GPU-1", "GPU-2"])
    assert called("my.yaml").resources == {"gpu": 2}
    assert not called("my.yaml", "--profile", str(ROOT / "slurm")).resources
    monkeypatch.setenv("SNAKEMAKE_PROFILE", str(ROOT / "slurm"))
    assert not called("my.yaml").resources


def test_shipped_profile_needs_no_copy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--profile", "slurm", "--profile", "slurm/university", "--profile", "mine", "slurm"]
    shipped = ["--profile", str(ROOT / "slurm"), "--profile", str(ROOT / "slurm/university")]
    assert find_profiles(options, ROOT) == [*shipped, *options[4:]]
    assert find_profiles(["--profile=slurm", "--profile=slurm/university", *options[4:]], ROOT) == [
        *shipped,
        *options[4:],
    ]
    (tmp_path / "slurm").mkdir()
    assert find_profiles(options, ROOT)[1] == "slurm"


def test_profile_of_the_environment_can_be_shipped(called, monkeypatch, capsys):
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "slurm")
    assert called("my.yaml").profile == [str(ROOT / "slurm")]
    assert called("my.yaml", "--profile", "slurm/university").profile == [str(ROOT / "slurm/university")]
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "nosuch")
    assert main(["run", "my.yaml"]) == 2
    assert "--profile nosuch: no such profile" in capsys.readouterr().err
