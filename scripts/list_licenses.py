"""List the licenses of all packages in the two locks, according to their metadata (LICENSES.md).

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
"""Longer statements are license texts."""
STATED_ELSEWHERE = {
    "conda-inject": "MIT",
    "pycocoevalcap": "BSD-2-Clause, and LGPL-2.1 for the METEOR 1.5 program that it contains",
    "snakemake-interface-common": "MIT",
    "snakemake-interface-logger-plugins": "MIT",
    "snakemake-interface-report-plugins": "MIT",
    "snakemake-interface-scheduler-plugins": "MIT",
    "snakemake-interface-storage-plugins": "MIT",
}
"""Licenses in the repositories of packages without a license in their metadata."""


def license_of(name: str) -> str:
    """License of an installed package: its expression, or else its classifiers, or else its free text."""
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
    """Packages in the locks by license. The most frequent license comes first."""
    packages: dict[str, list[str]] = {}
    for line in sorted("".join(lock.read_text(encoding="utf-8") for lock in LOCKS).splitlines(), key=str.lower):
        name, _, version = line.partition("==")
        packages.setdefault(license_of(name), []).append(f"`{name}` {version}")
    lines = [f"- **{name}**: {', '.join(packages[name])}" for name in sorted(packages, key=lambda n: -len(packages[n]))]
    return "\n".join(lines) + "\n"


def updated_page(page: str) -> str:
    """The page with licenses of the current lock."""
    return replace_between_marks(page, NAME, listing())


if __name__ == "__main__":
    print_or_write(PAGE, NAME, listing, purpose="List the licenses of all packages that docmt installs.")
