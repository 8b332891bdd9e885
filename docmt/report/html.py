"""HTML pages from templates. The reader imports this module, which therefore uses neither pandas nor matplotlib."""

from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


def html_environment() -> jinja2.Environment:
    """Return a Jinja2 environment that escapes text and rejects misspelt variables."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def read_template(*names: str) -> str:
    """Concatenate static page files (CSS, JavaScript)."""
    return "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in names)
