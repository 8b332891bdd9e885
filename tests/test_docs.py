"""The documentation: links resolve, pages are listed, generated parts are in step, and the prose is plain."""

import ast
import functools
import importlib
import itertools
import operator
import re
from pathlib import Path

import pytest

from docmt.cli.main import app
from docmt.commands import leaves

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
TEXTS = [
    *PAGES,
    *(
        file
        for folder in ("docmt", "workflow", "config", "tests", "scripts", "benchmarks", "slurm")
        for file in sorted((ROOT / folder).rglob("*"))
        if file.suffix in {".py", ".smk", ".yaml", ".rst", ".html", ".sh"} and file != Path(__file__)
    ),
    ROOT / "Snakefile",
    ROOT / "Makefile",
]


def name(file):
    return str(file.relative_to(ROOT))


def without_code(page):
    return re.sub(r"```.*?```|`[^`\n]*`", "", page, flags=re.S)


def links(page):
    """Targets of Markdown links and of pictures, except other sites."""
    targets = re.findall(r"\]\(([^()\s]+)\)", without_code(page)) + re.findall(r'(?:src|href)="([^"]+)"', page)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def anchors(page):
    """Anchors of a page's headings, in GitHub's format."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", page, flags=re.S), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("file", PAGES, ids=name)
def test_relative_links_resolve(file):
    page = file.read_text(encoding="utf-8")
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        assert target.exists(), f"{name(file)} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{name(file)}: no heading {link}"


def test_pages_that_comments_and_messages_name_exist():
    missing = [
        f"{name(file)}: {page}"
        for file in TEXTS
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text(encoding="utf-8"))
        if not (ROOT / page).exists()
    ]
    assert not missing


@pytest.mark.parametrize("file", PAGES, ids=name)
def test_files_in_backticks_exist(file):
    if file.name == "CHANGELOG.md":  # names the files of its time
        return
    paths = re.findall(
        r"`((?:docmt|docs|config|tests|workflow|scripts)/[^`\s:]*)[^`\s]*`", file.read_text(encoding="utf-8")
    )
    missing = [path for path in paths if not re.search("[{<…]", path) and not any(ROOT.glob(path.rstrip("/")))]
    assert not missing


def calls(page):
    """Words after `docmt` in code lines and in text in backticks, without comments."""
    page = page.replace("\\\n", " ")
    code = "\n".join(re.findall(r"```\w*\n(.*?)```", page, flags=re.S) + re.findall(r"^ {4}.*$", page, flags=re.M))
    lines = re.findall(r"^ *(?:\$ |exec )?docmt (.+)$", code, flags=re.M) + re.findall(r"`docmt ([^`]+)`", page)
    return [re.split(r" {2,}(?=[^-\[]*$)| [#<|(]|; ", line)[0].split() for line in lines]


def options_of(words):
    command = functools.reduce(operator.getitem, words, app)
    return {name for argument in command.assemble_argument_collection() for name in argument.names}


OPTIONS = {words: {*options_of(words), "--help", "--verbose", "--fingerprint"} for words, _ in leaves(app)}
GROUPS = {words[0] for words in OPTIONS if len(words) == 2}


def unknown_calls(page):
    """Commands and options that do not exist."""
    unknown = []
    for words in calls(page):
        if not re.fullmatch("[a-z]+", words[0]) or (words[0] in GROUPS and len(words) == 1):  # COMMAND, or a group
            continue
        command = tuple(words[: 2 if words[0] in GROUPS else 1])
        options = [word.strip("[],.") for word in words if re.match(r"\[?--[a-z]", word)]
        if command not in OPTIONS:
            unknown.append(" ".join(command))
        elif command != ("run",):  # it takes the options of Snakemake
            unknown += [f"{' '.join(command)} {option}" for option in options if option not in OPTIONS[command]]
    return unknown


@pytest.mark.parametrize("file", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_commands_and_their_options_exist(file):
    assert unknown_calls(file.read_text(encoding="utf-8")) == []


def test_unknown_commands_and_options_are_found():
    page = "`docmt corpora list` `docmt corpora lists`\n```\n$ docmt train --sed 1 --out x\ndocmt trian\n```\n"
    assert unknown_calls(page) == ["train --sed", "trian", "corpora lists"]


@pytest.mark.parametrize("index", [DOCS / "index.md", DOCS / "experiments/index.md"], ids=name)
def test_every_page_is_listed(index):
    listed = {(index.parent / link).resolve() for link in links(index.read_text(encoding="utf-8"))}
    assert set(index.parent.glob("*.md")) - {index} <= listed


def test_every_page_has_a_place_on_the_site():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"[\w/-]+\.md", text[text.index("\nnav:") :])
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    beside = {"contents.md", "contributing.md", "changelog.md", "licenses.md"}  # scripts/site_pages.py makes them
    assert sorted(listed) == sorted(pages | beside)


@pytest.mark.parametrize(
    "script", ["draw_architecture", "list_commands", "list_files", "list_metrics", "list_costs", "list_claims"]
)
def test_generated_parts_are_in_step(script, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module(script)
    page = module.PAGE.read_text(encoding="utf-8")
    assert page == module.updated_page(page), "run `make docs`"


def test_a_page_without_marks_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    with pytest.raises(ValueError, match="marks"):
        importlib.import_module("draw_architecture").updated_page("# No marks\n")


def test_diagram_leaves_out_implied_arrows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = importlib.import_module("draw_architecture")
    assert module.reduce_graph({"a": set(), "b": {"a"}, "c": {"a", "b"}}) == {"a": set(), "b": {"a"}, "c": {"b"}}
    with pytest.raises(ValueError, match="imports itself"):
        module.reduce_graph({"a": {"b"}, "b": {"a"}})


PROSE_LIMITS = {  # maximum number per 1,000 words, in docs and in docstrings or comments
    "semicolons": (r";", 4, 4),
    "of": (r"\bof\b", 30, 40),
    "what": (r"\bwhat\b", 1, 1),
    "which": (r"\bwhich\b", 2, 2),
    "those of": (r"\bth(?:ose|at) of\b", 0.1, 0.1),
    "each": (r"\beach\b", 3, 5),
    "alone, beside, too": (r"\balone\b|\bbesides?\b|, too\b", 0.3, 0.3),
}
PROSE_MINIMA = {  # minimum number per 1,000 words, in docs
    "modal verbs": (r"\b(?:can|will|should)\b", 4),
    "you": (r"\byou\b", 2),
    "examples": (r"\bfor example\b|\be\.g\.|\bsuch as\b", 1.5),
}


def prose(text):
    """A page without generated parts, comments, code, tables and links. Generated parts come from docstrings."""
    text = re.sub(r"<!-- generated by .*?: begin -->.*?: end -->|<!--.*?-->", "", text, flags=re.S)
    return re.sub(r"^( {4}|\|).*$|\]\([^)]*\)|<[^>]+>", "", without_code(text), flags=re.M)


@functools.cache
def docs():
    return "\n".join(prose(page.read_text(encoding="utf-8")) for page in DOCS.rglob("*.md"))


@functools.cache
def docstrings(*folders):
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files]
    statements = (node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Expr))
    texts = (node.value for node in statements if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return without_code("\n".join(texts))


@functools.cache
def comments(*patterns):
    """Comments without indented lines, which contain commands."""
    files = (file for pattern in patterns for file in ROOT.glob(pattern))
    texts = (re.findall(r"(?:^|\s)# (\S.*)", file.read_text(encoding="utf-8"), re.MULTILINE) for file in files)
    return without_code("\n".join(itertools.chain.from_iterable(texts)))


PROSE = {
    "docs": docs,
    "package": lambda: docstrings("docmt"),
    "tests": lambda: docstrings("tests"),
    "benchmarks": lambda: docstrings("benchmarks", "scripts"),
    "configurations": lambda: comments("config/**/*.yaml"),
    "rules": lambda: comments("Snakefile", "workflow/rules/*.smk"),
    "builds": lambda: comments(
        "slurm/**/*.yaml", "profiles/*/*.yaml", "Makefile", "Containerfile", ".ci/run", ".github/workflows/*.yml"
    ),
}


def density(pattern, text):
    """Matches per 1,000 words."""
    return 1000 * len(re.findall(pattern, text, flags=re.IGNORECASE)) / len(re.findall(r"[^\W\d_][\w'’-]*", text))


@pytest.mark.parametrize("group", PROSE)
@pytest.mark.parametrize("name", PROSE_LIMITS)
def test_prose_rarely_has(name, group):
    pattern, in_docs, elsewhere = PROSE_LIMITS[name]
    assert density(pattern, PROSE[group]()) <= (in_docs if group == "docs" else elsewhere)


@pytest.mark.parametrize("name", PROSE_MINIMA)
def test_prose_addresses_the_reader_with(name):
    pattern, minimum = PROSE_MINIMA[name]
    assert density(pattern, docs()) >= minimum


def test_listed_messages_are_in_code():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `(.+?)` \|", page, re.MULTILINE)
    assert len(messages) >= 20
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "docmt").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    for message in messages:
        for part in message.split("…"):
            assert part.strip() in code, message
