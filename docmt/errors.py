"""Errors that a user can cause and fix."""


class UserError(Exception):
    """A problem that the user can fix: bad input, a bad setting, a missing file.

    The message is one line that says what is wrong, where, and what to do. The command line prints it and exits
    with code 2. Any other exception is a bug in docmt and keeps its traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
