"""Errors that users can fix."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Control characters. In a terminal, they can move the cursor or change colors and title."""

OUT_OF_MEMORY = (
    "can't allocate memory",
    "DefaultCPUAllocator",
    "bad_alloc",
    "out of memory",
    "could not create a memory",
)
"""Parts of RuntimeError messages of PyTorch that mean a lack of memory."""

MAX_REASON = 150
"""Maximum characters of a message from another package."""


class UserError(Exception):
    r"""A problem that the user can fix, for example bad input, a bad setting or a missing file.

    The message is one line: place, problem and remedy. Control characters in quoted text are shown as `\x1b`. The
    command line prints the message and exits with code 2. All other exceptions are bugs in docmt and keep their
    traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escape_controls(" ".join(message.split())))


def escape_controls(text: str, *, keep: str = "") -> str:
    r"""Return text with control characters as `\x1b`, except the characters in `keep`."""
    return CONTROL.sub(lambda match: match[0] if match[0] in keep else f"\\x{ord(match[0]):02x}", text)


def first_line(error: BaseException) -> str:
    """Return the start of an exception's message from another package, or its type if the message is blank."""
    lines = str(error).split("\n")
    return next((line.strip()[:MAX_REASON] for line in lines if line.strip()), type(error).__name__)


def is_out_of_memory(error: BaseException) -> bool:
    """True if memory was lacking. On a CPU, PyTorch raises a plain RuntimeError then."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(part in str(error) for part in OUT_OF_MEMORY)
    )
