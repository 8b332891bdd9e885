"""Provenance of artifacts: versions, commit, settings and their hash."""

import functools
import hashlib
import json
import platform
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from docmt import __version__
from docmt.files import write_json

PACKAGES = ("torch", "lightning-fabric", "numpy", "sacremoses", "subword-nmt", "jieba", "sacrebleu")


def fingerprint(value: Any) -> str:
    """Return a short hash (12 hexadecimal digits) of a JSON-like value. The order of keys has no effect."""
    # `default`: paths and other values that JSON lacks.
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


@functools.cache
def commit() -> str:
    """Return the git commit of the source tree, with `+` after uncommitted changes. Without its own git: `unknown`."""
    root = Path(__file__).resolve().parent.parent
    try:
        folder, head = _git(root, "rev-parse", "--show-toplevel", "--short=12", "HEAD").rsplit("\n", 1)
        # An installed package can be inside another repository, such as a study.
        if Path(folder).resolve() != root:
            return "unknown"
        return head + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=20
    ).stdout.strip()


def package_versions(names: Iterable[str]) -> dict[str, str]:
    """Return the versions of the installed packages among these names."""
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def describe(*, settings: Any = None, **facts: Any) -> dict[str, Any]:
    """Return the provenance of an artifact: versions, commit, settings, their fingerprint, and `facts`."""
    versions = {"python": platform.python_version()} | package_versions(PACKAGES)
    described = {"docmt": __version__, "commit": commit(), "versions": versions, **facts}
    if settings is not None:
        described |= {"settings": settings, "fingerprint": fingerprint(settings)}
    return described


def describe_result(*, settings: Any, fingerprint: str | None = None, **facts: Any) -> dict[str, Any]:
    """Return `describe` with the fingerprint from the workflow, if any, since it also covers all inputs."""
    return describe(settings=settings, **facts) | ({"fingerprint": fingerprint} if fingerprint else {})


def job_facts_path(out: Path) -> Path:
    """Return the path of the facts about an artifact's job. For example, `model.job.json` next to `model.pt`."""
    return out.with_suffix(".job.json")


def write_job_facts(out: Path, **facts: Any) -> None:
    """Write facts about the job that made an artifact as JSON.

    Args:
        out: the artifact.
        facts: `device` ("cpu" or "cuda"), `n_devices`, and further values.
    """
    write_json(job_facts_path(out), facts)
