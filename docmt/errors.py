"""Errors that a user can cause and fix."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that move the cursor of a terminal, change its colors or its title."""


class UserError(Exception):
    r"""A problem that the user can fix: bad input, a bad setting, a missing file.

    The message is one line that says what is wrong, where, and what to do. Control characters in what it quotes are
    shown as `\x1b`. The command line prints it and exits with code 2. Any other exception is a bug in docmt and keeps
    its traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", " ".join(message.split())))
