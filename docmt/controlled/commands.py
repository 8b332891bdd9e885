"""`docmt controlled`: the controlled corpus."""

from docmt.commands import CommandGroup, OutFolder

commands = CommandGroup("controlled")


@commands.command
def generate(*, settings: str, out: OutFolder) -> None:
    """Generate a controlled English-German corpus with contrastive test sets.

    Example:
        docmt controlled generate --settings '{"generator":"nested","seed":2}' --out controlled

    Args:
        settings: keys of a row of `corpora.controlled` as JSON or @FILE.
        out: folder for the splits and suites.
    """
    from docmt.controlled.generator import generate_corpus
    from docmt.controlled.settings import load_settings

    generate_corpus(load_settings(settings), out)
