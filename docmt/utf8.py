"""UTF-8 in every locale, for text, file names, arguments and programs that docmt starts."""

import io
import os
import sys


def use_utf8() -> None:
    """Start this process again in Python's UTF-8 mode if the locale has another encoding, such as Latin-1."""
    if sys.getfilesystemencoding() != "utf-8":
        os.environ["PYTHONUTF8"] = "1"  # for Python programs that this process starts
        # The option is necessary, because Python can ignore the variable (`python -E`).
        os.execv(sys.executable, [sys.executable, "-Xutf8", *sys.orig_argv[1:]])


def print_utf8() -> None:
    """Print UTF-8, even if `PYTHONIOENCODING` names another encoding. File names in other encodings are escaped."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
