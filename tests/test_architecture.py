"""Structure of the project: allowed imports between packages, file lengths, and consistent package lists."""

import ast
import graphlib
import importlib
import importlib.util
import re
import statistics
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
STAGES = (
    "formats",
    "corpora",
    "text",
    "discourse",
    "controlled",
    "instances",
    "models",
    "training",
    "decoding",
    "evaluation",
    "report",
    "config",
    "status",
    "cli",
)
"""A package only imports itself and packages before it in this list."""
BASE = (
    "batching",
    "checksums",
    "commands",
    "decompression",
    "errors",
    "files",
    "gpu_locks",
    "languages",
    "logs",
    "model_owners",
    "outputs",
    "paths",
    "current_run",
    "processes",
    "provenance",
    "ranges",
    "replaced_models",
    "settings",
    "slurm",
    "snakemake",
    "snakemake_messages",
    "snakemake_patches",
    "snakemake_records",
    "tensor_files",
    "utf8",
)
"""Modules that every package may import."""
MAX_WORDS_OF_TEST_NAME = 8
MAX_MEDIAN_WORDS_OF_TEST_NAME = 6
NO_NOUNS = {"place", "found", "own", "made", "given", "chosen", "kept", "known", "shown", "told"}
"""Names that do not describe the content of a variable."""
MAX_DENSE_IDIOMS = {"comprehensions": 28, "ternaries": 13, "walrus": 0.5}
"""Per 1,000 lines of the package."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

MAX_LINES = {"tests": 500}  # tables are long
MAX_LINES_ELSEWHERE = 450

MODULES = sorted((ROOT / "docmt").rglob("*.py"))
SOURCES = [
    file
    for folder in ("docmt", "tests", "benchmarks", "scripts", "workflow")
    for suffix in ("*.py", "*.smk")
    for file in sorted((ROOT / folder).rglob(suffix))
]


def imported(file):
    """First parts below `docmt` of all imports, at any depth in the file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names = [f"{node.module}.{alias.name}" if node.module == "docmt" else node.module for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "docmt" and rest:
                yield rest.split(".")[0]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_one_way(file):
    package = file.relative_to(ROOT / "docmt").parts[0].removesuffix(".py")
    if package == "__init__":
        allowed = set()
    elif package == "__main__":
        allowed = {"cli"}
    elif package in BASE:
        allowed = {*BASE, "__version__"}
    else:
        allowed = {*BASE, *STAGES[: STAGES.index(package) + 1], "__version__"}
    assert set(imported(file)) <= allowed


def module_name(file):
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_no_module_imports_itself_through_others():
    """Imports inside functions and for type checkers also count. Plug-ins and commands are found by name on purpose."""
    names = {module_name(file): file for file in MODULES}
    graph = {}
    for name, file in names.items():
        wanted = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                wanted |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
        graph[name] = (wanted & names.keys()) - {name, "docmt"}
    graphlib.TopologicalSorter(graph).prepare()  # its error shows the circle


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_stay_readable_in_one_sitting(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_LINES.get(
        file.relative_to(ROOT).parts[0], MAX_LINES_ELSEWHERE
    )


def test_planning_does_not_import_torch():
    import subprocess
    import sys

    code = "import sys, docmt.config.plan, docmt.cli.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_environment_is_in_step_with_pyproject():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [part["pip"] for part in environment["dependencies"] if isinstance(part, dict)]
    assert pip == project()["dependencies"]
    assert f"python {project()['requires-python']}" in environment["dependencies"]


def test_lock_pins_all_packages():
    lock = {}
    for line in [*locked("requirements"), *locked("requirements-test")]:
        name, equals, version = line.partition("==")
        assert equals, line
        assert re.fullmatch(r"[0-9][0-9a-z.]*", version), line
        name = normal(name)
        assert name not in lock, f"duplicate {name}"
        lock[name] = version
    extras = project()["optional-dependencies"].values()
    assert {normal(name.partition("==")[0]) for name in locked("requirements-test")}.isdisjoint(
        normal(Requirement(text).name) for text in project()["dependencies"]
    )
    for text in [*project()["dependencies"], *(line for extra in extras for line in extra)]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(lock[normal(requirement.name)]), text
    assert lock["torch"] == "2.13.0"


@pytest.mark.parametrize("name", ["requirements", "requirements-test"])
def test_locked_packages_have_checksums(name):
    """Checksums of all files, so that pip can compare them on every platform. torch's build depends on the machine."""
    blocks = re.findall(
        r"^([\w.-]+==[\w.]+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
        (ROOT / f"{name}.hashes").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    lock = locked(name)
    hashed = [package.partition("==") for package, _ in blocks]
    pinned = [line.partition("==") for line in lock if not line.startswith("torch==")]
    assert sorted((normal(n), v) for n, _, v in hashed) == sorted((normal(n), v) for n, _, v in pinned)
    assert all(checksums.count("sha256") >= 1 for _, checksums in blocks)


def test_locked_packages_have_known_licenses(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    listing = importlib.import_module("list_licenses")
    page = listing.PAGE.read_text(encoding="utf-8")
    licenses = re.findall(r"^- \*\*(.*)\*\*: (.*)$", page, re.MULTILINE)
    packages = [package for _, names in licenses for package in re.findall(r"`(.+?)` (\S+?)(?:,|$)", names)]
    listed = ["==".join(package) for package in packages]
    assert sorted(listed) == sorted([*locked("requirements"), *locked("requirements-test")])
    assert not {"", "UNKNOWN"} & {license for license, _ in licenses}
    assert page == listing.updated_page(page)


def locked(name):
    return (ROOT / f"{name}.lock").read_text(encoding="utf-8").splitlines()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_command_of_the_rules_exists():
    from docmt.cli.main import app
    from docmt.commands import leaves

    leaf_names = {words for words, _ in leaves(app)}
    pattern = re.compile(r'"(?:exec )?docmt ([a-z]+)(?: ([a-z][a-z-]*))?')
    calls = set()
    for file in (ROOT / "workflow/rules").glob("*.smk"):
        calls |= set(pattern.findall(file.read_text(encoding="utf-8")))
    assert len(calls) >= 18
    for group, command in calls:
        assert tuple(filter(None, (group, command))) in leaf_names


def test_listed_failures_name_existing_tests():
    text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 53))
    for _, tests in rows:
        paths = re.findall(r"`(tests/[^`]+)`", tests)
        assert paths
        assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_two_classes_have_one_name():
    names = [
        node.name
        for file in MODULES
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert sorted(names) == sorted(set(names))


def test_no_two_files_of_tests_have_one_name():
    """Pytest would import only the first."""
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_functions_fit_on_a_screen(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            assert node.end_lineno - first.lineno < 60, node.name


@pytest.mark.parametrize("folder", ["benchmarks", "scripts"])
def test_benchmarks_and_scripts_import_names_that_exist(folder):
    """The type checker only reads the package, so a renaming there could break benchmarks and scripts unnoticed."""
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("docmt", "benchmarks")):
                module = importlib.import_module(node.module)
                for name in node.names:
                    is_importable = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
                    assert is_importable, f"{file.name}: {node.module}.{name.name}"


TWINS = {"read_monolingual", "combine_monolingual", "generate_nested", "translate_shard"}
"""Rules that only differ from another rule in their outputs."""


def test_each_rule_has_the_name_of_its_command():
    """The last words of the command, for example `evaluate_run` for `docmt evaluate run`."""
    text = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "workflow/rules").glob("*.smk")))
    rules = dict(re.findall(r'^rule (\w+):\n(?:(?!^rule ).*\n)*? +"(?:exec )?docmt ((?:[a-z][a-z-]* )+)', text, re.M))
    assert len(rules) > 35
    for rule, words in rules.items():
        command = words.strip().replace("-", "_").replace(" ", "_")
        assert f"_{command}".endswith(f"_{rule}"), f"{rule}: docmt {words}"
    assert set(re.findall(r"^use rule \w+ as (\w+) with:", text, re.M)) == TWINS


def test_names_of_tests_are_short():
    names = [
        node.name.removeprefix("test_").split("_")
        for file in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [name for name in names if len(name) > MAX_WORDS_OF_TEST_NAME] == []
    assert statistics.median(map(len, names)) <= MAX_MEDIAN_WORDS_OF_TEST_NAME


def test_names_of_variables_are_nouns():
    names = []
    for file in SOURCES:
        if file.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append((file.name, node.lineno, node.id))
            elif isinstance(node, ast.arg):
                names.append((file.name, node.lineno, node.arg))
    assert len(names) > 10000
    assert [row for row in names if row[2] in NO_NOUNS] == []


@pytest.mark.parametrize(
    ("idiom", "types"),
    [("comprehensions", COMPREHENSIONS), ("ternaries", ast.IfExp), ("walrus", ast.NamedExpr)],
)
def test_code_has_few_dense_idioms(idiom, types):
    n_lines = n_idioms = 0
    for file in MODULES:
        text = file.read_text(encoding="utf-8")
        n_lines += text.count("\n")
        n_idioms += sum(isinstance(node, types) for node in ast.walk(ast.parse(text)))
    assert 1000 * n_idioms / n_lines <= MAX_DENSE_IDIOMS[idiom]
