"""Files with tensors and plain values, read without executing code."""

import io
import zipfile
from collections.abc import Collection
from typing import Any

import torch

from docmt.errors import UserError, first_line


def read_tensors(
    data: bytes, *, where: str, what: str, mend: str, format: int, kind: str, keys: Collection[str]
) -> dict[str, Any]:
    """Return the content of a file written by `torch.save`, with tensors on the CPU.

    Args:
        data: file content.
        where: file name in messages.
        what: expected type in messages, such as `a segmenter`.
        mend: remedy in messages for a file in another format.
        format: required value of the key `format`.
        keys: other required keys.
        kind: required value of the key `kind`, which distinguishes files with the same keys.
    """
    try:
        damaged = zipfile.ZipFile(io.BytesIO(data)).testzip()  # torch ignores checksums
        if damaged is not None:
            raise UserError(f"{where}: damaged (the checksum of {damaged} in it differs): create it again")
        content = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except UserError:
        raise
    except Exception as error:  # torch raises many kinds of errors for damaged files
        raise UserError(f"{where}: not {what} ({first_line(error)})") from None
    if isinstance(content, dict) and "format" in content and content.get("kind") != kind:
        other = content.get("kind") or "unknown"
        raise UserError(f"{where}: not {what} of format {format}, but a different kind of file ({other}): {mend}")
    is_ours = isinstance(content, dict) and content.get("format") == format and content.get("kind") == kind
    if not is_ours or not set(keys) <= set(content):
        raise UserError(f"{where}: not {what} of format {format}: {mend}")
    return content
