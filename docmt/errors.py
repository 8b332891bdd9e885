"""Errors that users can fix."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters. In a terminal, they can move the cursor or change colors and title."""


class UserError(Exception):
    r"""A problem that the user can fix, for example bad input, a bad setting or a missing file.

    The message is one line: place, problem and remedy. Control characters in quoted text are shown as `\x1b`. The
    command line prints the message and exits with code 2. All other exceptions are bugs in docmt and keep their
    traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", " ".join(message.split())))
