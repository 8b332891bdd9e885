"""List the licenses of all packages of the two locks, as their metadata state them (LICENSES.md).

python scripts/list_licenses.py [--write]
"""

from importlib import metadata
from pathlib import Path

from marked_page import print_or_write, replace_between_marks

ROOT = Path(__file__).parents[1]
LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-test.lock")
PAGE = ROOT / "LICENSES.md"
NAME = "python scripts/list_licenses.py"
LONGEST = 70
"""Longer statements are texts of licenses, not names."""
STATED_ELSEWHERE = {
    "conda-inject": "MIT",
    "pycocoevalcap": "BSD-2-Clause, and LGPL-2.1 for the METEOR 1.5 program that it contains",
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
    "snakemake-interface-report-plugins": "MIT",
    "snakemake-interface-scheduler-plugins": "MIT",
    "snakemake-interface-storage-plugins": "MIT",
}
"""Packages whose metadata state no license, and what their repositories state."""


def license_of(name: str) -> str:
    """The license of an installed package: its expression, else its classifiers, else its free text."""
    if name in STATED_ELSEWHERE:
        return STATED_ELSEWHERE[name]
    facts = metadata.metadata(name)
    if expression := facts.get("License-Expression"):
        return expression
    classifiers = [line.split(" :: ")[-1] for line in facts.get_all("Classifier") or [] if line.startswith("License")]
    if names := [name for name in classifiers if name != "DFSG approved"]:
        return ", ".join(names)
    text = (facts.get("License") or "").strip()
    return text if 0 < len(text) <= LONGEST and "\n" not in text else "UNKNOWN"


def listing() -> str:
    """The packages of the locks by license, the most frequent first."""
    packages: dict[str, list[str]] = {}
    for line in sorted("".join(lock.read_text(encoding="utf-8") for lock in LOCKS).splitlines(), key=str.lower):
        name, _, version = line.partition("==")
        packages.setdefault(license_of(name), []).append(f"`{name}` {version}")
    lines = [f"- **{name}**: {', '.join(packages[name])}" for name in sorted(packages, key=lambda n: -len(packages[n]))]
    return "\n".join(lines) + "\n"


def updated_page(page: str) -> str:
    """The page with the licenses of today's lock."""
    return replace_between_marks(page, NAME, listing())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, listing, purpose="List the licenses of all packages that docmt installs.")
