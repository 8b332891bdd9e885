"""Downloading one address to one file: resumable, with retries, and never half-written under the final name."""

import json
import logging
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import requests
import tenacity
import urllib3
from tqdm import tqdm

log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 14
TEMPORARY_STATUS = {408, 425, 429, 500, 502, 503, 504}
BROKEN_CONNECTION = (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError)


class AddressError(Exception):
    """An address does not serve the file. The message says why; another address may."""


class _TemporaryError(Exception):
    """A failure worth another attempt: a busy server, a broken connection.

    Attributes:
        wait_seconds: how long the server asks the client to wait, or 0.
    """

    def __init__(self, message: str, wait_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


@dataclass(frozen=True)
class Patience:
    """How many attempts one address gets, and how long they wait."""

    n_attempts: int = 5
    """Successive attempts without progress after which the address is given up."""
    first_wait_seconds: float = 1.0
    """Wait before the second attempt; each further wait is twice as long."""
    longest_wait_seconds: float = 60.0
    """Upper limit of a wait, even if the server asks for a longer one."""
    timeout_seconds: float = 60.0
    """Time without data after which a connection counts as broken."""
    slow_seconds: float = 300.0
    """Time in which at least `slow_bytes` must arrive."""
    slow_bytes: int = 30_000
    """See `slow_seconds`; a modem is forty times faster."""


def download(
    url: str,
    target: Path,
    *,
    is_right: Callable[[Path], bool] = lambda _: True,
    most_bytes: int | None = None,
    patience: Patience | None = None,
) -> None:
    """Fetch `url` to `target`.

    Partial data stay in `target.part`, and the address and the server's validator in `target.part.json`, so that the
    next attempt, or the next call, requests only the rest. `is_right` checks the complete file. A resumed file that
    fails is fetched once more from its start, because its first part may have been wrong. A file that becomes larger
    than `most_bytes` is given up: a server must not fill the disk.

    Raises AddressError when the address does not serve the file.
    """
    patience = patience or Patience()
    part = _Part(target, most_bytes)
    for is_last in (False, True):
        was_resumed = _fetch(url, part, patience)
        if is_right(part.path):
            target.parent.mkdir(parents=True, exist_ok=True)
            part.finish()
            return
        n_bytes = part.n_bytes
        part.clear()
        if is_last or not was_resumed:
            raise AddressError(f"{url}: the checksum differs ({n_bytes} bytes received)")
        log.info("%s: the resumed file is wrong; starting over", url)


class _Part:
    """The partial data of a file, `NAME.part`, and `NAME.part.json` with the address and the server's validator."""

    def __init__(self, target: Path, most_bytes: int | None) -> None:
        self.target = target
        self.most_bytes = most_bytes
        self.path = target.with_name(target.name + ".part")
        self.facts_path = target.with_name(target.name + ".part.json")

    @property
    def n_bytes(self) -> int:
        """The number of bytes received so far."""
        return self.path.stat().st_size if self.path.exists() else 0

    def resumable(self, url: str) -> tuple[int, str | None]:
        """The number of bytes from this address, and the validator; 0 and None when the part cannot be resumed."""
        try:
            facts = json.loads(self.facts_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0, None
        # Without a validator, the server may since have changed the file unnoticed: start over.
        return (self.n_bytes, facts["validator"]) if facts.get("url") == url and facts.get("validator") else (0, None)

    def start(self, url: str, validator: str | None) -> None:
        """Record the address and the validator of the data about to arrive."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.facts_path.write_text(json.dumps({"url": url, "validator": validator}), encoding="utf-8")

    def finish(self) -> None:
        """Move the complete file to its final name."""
        os.replace(self.path, self.target)
        self.facts_path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the partial data."""
        self.path.unlink(missing_ok=True)
        self.facts_path.unlink(missing_ok=True)


def _fetch(url: str, part: _Part, patience: Patience) -> bool:
    """Download the file, in as many attempts as make progress. Returns whether it was ever resumed."""
    was_resumed = False
    backoff = tenacity.wait_exponential(multiplier=patience.first_wait_seconds, max=patience.longest_wait_seconds)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome and state.outcome.exception()
        asked = error.wait_seconds if isinstance(error, _TemporaryError) else 0.0
        return max(backoff(state), min(asked, patience.longest_wait_seconds))

    def tell(state: tenacity.RetryCallState) -> None:
        log.info("%s; trying again in %.1f s", state.outcome and state.outcome.exception(), state.upcoming_sleep)

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_TemporaryError),
        stop=tenacity.stop_after_attempt(patience.n_attempts),
        wait=wait,
        before_sleep=tell,
        reraise=True,
    )
    most_bytes = 0
    while True:
        try:
            for attempt in retrying:
                with attempt:
                    was_resumed |= _fetch_once(url, part, patience)
            return was_resumed
        except _TemporaryError as error:
            # Only attempts without progress count: a large file over a bad connection needs many.
            if part.n_bytes <= most_bytes:
                raise AddressError(f"{error}, {patience.n_attempts} times") from None
            most_bytes = part.n_bytes


def _fetch_once(url: str, part: _Part, patience: Patience) -> bool:
    """Make one request. Returns whether it resumed a part. Raises _TemporaryError or AddressError."""
    start, validator = part.resumable(url)
    # The checksums in the catalogue are those of the file, so ask for no transfer compression.
    headers = {"Accept-Encoding": "identity"}
    if start and validator:
        headers |= {"Range": f"bytes={start}-", "If-Range": validator}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=patience.timeout_seconds) as response:
            _check_status(url, response, part)
            is_rest = response.status_code == 206 and _first_byte(response) == start
            if response.status_code == 206 and not is_rest:
                part.clear()
                raise _TemporaryError(f"{url}: the server sent a range other than the one requested")
            if not is_rest:
                start = 0
                part.start(url, _validator(response))
            _store(response, part, start, patience)
    except BROKEN_CONNECTION as error:
        raise _TemporaryError(f"{url}: the connection broke ({type(error).__name__})") from None
    except requests.RequestException as error:
        raise AddressError(f"{url}: {type(error).__name__}") from None
    return is_rest


def _check_status(url: str, response: requests.Response, part: _Part) -> None:
    status = response.status_code
    if url.startswith("https:") and not response.url.startswith("https:"):
        raise AddressError(f"{url}: leads to {response.url}, which is not encrypted")
    if status == 416:
        part.clear()
        raise _TemporaryError(f"{url}: HTTP 416, the partial file does not match")
    if status in TEMPORARY_STATUS:
        asked = response.headers.get("Retry-After", "")
        raise _TemporaryError(f"{url}: HTTP {status}", float(asked) if asked.isdecimal() else 0.0)
    if status not in (200, 206):
        raise AddressError(f"{url}: HTTP {status}")


def _first_byte(response: requests.Response) -> int | None:
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match[1]) if match else None


def _validator(response: requests.Response) -> str | None:
    """The value for If-Range: a strong ETag, or the time of the last change."""
    etag = response.headers.get("ETag", "")
    return etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")


class _Pace:
    """Gives up a server that sends hardly anything, but too often to count as broken."""

    def __init__(self, patience: Patience, start: int) -> None:
        self.patience = patience
        self.since, self.received = time.monotonic(), start

    def check(self, received: int, url: str) -> None:
        """Raise AddressError when less than the patience asks for has arrived in the last period."""
        if time.monotonic() - self.since < self.patience.slow_seconds:
            return
        if received - self.received < self.patience.slow_bytes:
            raise AddressError(
                f"{url}: sends less than {self.patience.slow_bytes:,} bytes in {self.patience.slow_seconds:g} s; what "
                "has arrived is kept, try again later"
            )
        self.since, self.received = time.monotonic(), received


def _store(response: requests.Response, part: _Part, start: int, patience: Patience) -> None:
    """Write the body from byte `start` on. Data received before a connection breaks are kept."""
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdecimal() else None
    with (
        open(part.path, "r+b" if start else "wb") as file,
        tqdm(desc=part.path.stem, initial=start, total=total, unit="B", unit_scale=True, disable=None) as bar,
    ):
        file.seek(start)
        pace = _Pace(patience, start)
        # `iter_content` would return only when a whole chunk has arrived, and never at a byte a minute.
        while chunk := response.raw.read1(CHUNK_BYTES, decode_content=True):
            file.write(chunk)
            bar.update(len(chunk))
            pace.check(file.tell(), response.url)
            if part.most_bytes is not None and file.tell() > part.most_bytes:
                part.clear()
                raise AddressError(f"{response.url}: serves more than the {part.most_bytes:,} bytes of the file")
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
        # Not every version of urllib3 notices a truncated body.
        if total is not None and file.tell() < total and "Content-Encoding" not in response.headers:
            raise requests.ConnectionError("short body")
