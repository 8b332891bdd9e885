"""Hooks of MkDocs (mkdocs.yml). README and other root files become pages, and links work as on GitHub."""

import logging
import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

log = logging.getLogger("mkdocs.hooks.site_pages")

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "docs/index.md": "contents.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSES.md": "licenses.md",
}
"""Site paths of pages outside docs/."""
LINK = re.compile(r"""\[(?P<text>[^][]*)\]\((?P<path>[^():#\s]+)(?P<anchor>\#[^)\s]*)?\)""")
PICTURE = re.compile(r'(?<=\bsrc=")[^":]+(?=")')


def on_config(config: Any) -> None:
    """Set the repository of a build on GitHub. In other builds, links to files that are not pages stay text."""
    if repository := os.environ.get("GITHUB_REPOSITORY"):
        config.repo_url = f"{os.environ['GITHUB_SERVER_URL']}/{repository}"


def on_files(files: Files, *, config: Any) -> None:
    """Set the site paths of README and other root files."""
    if (contents := files.get_file_from_path("index.md")) is not None:
        files.remove(contents)
    for source, address in PAGES.items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / source)))


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Change links to files in the repository into links to pages of the site."""
    here = Path(page.file.abs_src_path).relative_to(ROOT).parent

    def find(path: str) -> tuple[str, str | None]:
        target = Path(os.path.normpath(here / path)).as_posix()
        address = PAGES.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(address) is None:
            return target, None
        return target, os.path.relpath(address, PurePosixPath(page.file.src_uri).parent)

    def lead(link: re.Match[str]) -> str:
        target, address = find(link["path"])
        if address is None and not (ROOT / target).exists():
            log.warning("%s: no file %s", page.file.src_uri, link["path"])
        if address is None and not config.repo_url:
            return link["text"]
        address = f"{config.repo_url}/blob/HEAD/{target}" if address is None else address
        return f"[{link['text']}]({address}{link['anchor'] or ''})"

    # Code stays as it is: every second part.
    parts = re.split(r"(```.*?```|`[^`\n]*`)", markdown, flags=re.DOTALL)
    parts[::2] = [PICTURE.sub(lambda path: find(path[0])[1] or path[0], LINK.sub(lead, text)) for text in parts[::2]]
    return "".join(parts)
