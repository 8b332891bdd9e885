"""Downloads to files: resumable, with retries, and atomic.

The common library pooch neither resumes downloads nor limits their size and duration.
"""

import contextlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import requests
import urllib3
from tqdm import tqdm

log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 14
# Maximum size of a file with unknown size: eight times the largest archive in the catalog.
MAX_BYTES = 1 << 33
# Retry after timeouts, rate limits, and overloaded servers or proxies.
TEMPORARY_STATUS = {408, 425, 429, 500, 502, 503, 504}
BROKEN_CONNECTION = (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError)


class AddressError(Exception):
    """An address or a mirror does not serve the file. Another address can be tried."""


class _TemporaryError(Exception):
    """A temporary failure, for example a busy server or a broken connection."""

    def __init__(self, message: str, wait_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.wait_seconds = wait_seconds


@dataclass(frozen=True)
class Patience:
    """Attempts, waits and limits per address."""

    n_attempts: int = 5
    """Maximum number of successive attempts without progress."""
    first_wait_seconds: float = 1.0
    """Wait before the second attempt. The wait doubles after every attempt."""
    max_wait_seconds: float = 60.0
    """Maximum wait, even if the server requests a longer one."""
    timeout_seconds: float = 60.0
    """Maximum time without data before a connection is broken."""
    slow_seconds: float = 300.0
    slow_bytes: int = 30_000
    """Minimum number of bytes in every `slow_seconds`, from the end of the headers. A modem is forty times faster."""


def download(
    url: str,
    target: Path,
    *,
    is_right: Callable[[Path], bool] = lambda _: True,
    most_bytes: int = MAX_BYTES,
    patience: Patience = Patience(),
) -> None:
    """Fetch `url` to `target`.

    After partial data, the next attempt or call requests only the rest. `is_right` checks the complete file. A resumed
    file that fails is fetched again from its start, because its first part can be wrong. Downloads are limited to
    `most_bytes`, since a server must not fill the disk.

    Raises AddressError if the address does not serve the file.
    """
    transfer = _Transfer(url, target, most_bytes, patience)
    for is_last in (False, True):
        was_resumed = transfer.fetch()
        if is_right(transfer.part):
            os.replace(transfer.part, target)
            transfer.origin.unlink(missing_ok=True)
            return
        n_bytes = transfer.n_bytes
        transfer.clear()
        if is_last or not was_resumed:
            raise AddressError(f"{url}: the checksum differs ({n_bytes} bytes received)")
        log.info("%s: the resumed file has a wrong checksum; starting again", url)


class _Transfer:
    """A download with partial data `NAME.part`, and `NAME.part.json` with address and validator."""

    def __init__(self, url: str, target: Path, most_bytes: int, patience: Patience) -> None:
        self.url = url
        self.most_bytes = most_bytes
        self.patience = patience
        self.session = requests.Session()
        if url.startswith("https:"):
            # No redirection may lead through an unencrypted address, where an attacker could choose the next one. Files
            # without a published checksum have no other protection.
            del self.session.adapters["http://"]

        def close_redirection(response: requests.Response, **_: object) -> None:
            # `requests` would read the complete body of a redirection into memory.
            if response.is_redirect:
                response.raw.close()

        self.session.hooks["response"].append(close_redirection)
        self.part = target.with_name(target.name + ".part")
        self.origin = target.with_name(target.name + ".part.json")

    @property
    def n_bytes(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def clear(self) -> None:
        self.part.unlink(missing_ok=True)
        self.origin.unlink(missing_ok=True)

    def fetch(self) -> bool:
        """Download the file with retries. Returns True if the last request resumed a part."""
        n_failures = 0
        furthest = 0
        while True:
            try:
                return self._request()
            except _TemporaryError as error:
                # Only attempts without progress count, since a large file over a bad connection needs many.
                if self.n_bytes > furthest:
                    n_failures = 0
                    furthest = self.n_bytes
                else:
                    n_failures += 1
                if n_failures >= self.patience.n_attempts:
                    raise AddressError(f"{error}, {n_failures} times") from None
                wait = max(self.patience.first_wait_seconds * 2 ** max(n_failures - 1, 0), error.wait_seconds)
                wait = min(wait, self.patience.max_wait_seconds)
                log.info("%s; trying again in %.1f s", error, wait)
                time.sleep(wait)

    def _request(self) -> bool:
        """Make one request. Returns True if it resumed a part. Raises _TemporaryError or AddressError."""
        start = 0
        validator = None
        with contextlib.suppress(OSError, ValueError):
            origin = json.loads(self.origin.read_text(encoding="utf-8"))
            # Without a validator, the file could have changed on the server: start over.
            if origin.get("url") == self.url and origin.get("validator"):
                start = self.n_bytes
                validator = origin["validator"]
        # Without transfer compression, since catalog checksums are for the uncompressed file.
        headers = {"Accept-Encoding": "identity"}
        if start and validator:
            headers |= {"Range": f"bytes={start}-", "If-Range": validator}
        try:
            with self._open(headers) as response:
                self._check_status(response)
                first_byte = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
                # Some servers ignore `Range` and send the whole file (200), others send another range.
                is_rest = response.status_code == 206 and first_byte is not None and int(first_byte[1]) == start
                if response.status_code == 206 and not is_rest:
                    self.clear()
                    raise _TemporaryError(f"{self.url}: the server sent a range other than the one requested")
                if not is_rest:
                    start = 0
                    # If-Range needs a strong ETag, or the time of the last change.
                    validator = response.headers.get("ETag", "")
                    if not validator or validator.startswith("W/"):
                        validator = response.headers.get("Last-Modified")
                    if "Content-Encoding" in response.headers:
                        validator = None  # a range would count compressed bytes, but the part is decompressed
                    self.part.parent.mkdir(parents=True, exist_ok=True)
                    self.origin.write_text(json.dumps({"url": self.url, "validator": validator}), encoding="utf-8")
                self._store(response, start)
        except BROKEN_CONNECTION as error:
            raise _TemporaryError(f"{self.url}: the connection broke ({type(error).__name__})") from None
        except requests.exceptions.InvalidSchema as error:
            raise AddressError(f"{self.url}: redirects to an unencrypted address ({error})") from None
        except (requests.RequestException, ValueError) as error:  # ValueError: redirected to an invalid address
            raise AddressError(f"{self.url}: {type(error).__name__} ({error})") from None
        return is_rest

    def _open(self, headers: dict[str, str]) -> requests.Response:
        """Return the response to a request. All headers must arrive in `slow_seconds`."""
        answer: Future[requests.Response] = Future()

        def ask() -> None:
            try:
                answer.set_result(
                    self.session.get(self.url, headers=headers, stream=True, timeout=self.patience.timeout_seconds)
                )
            except BaseException as error:
                answer.set_exception(error)

        # In a thread, because the timeout of `requests` restarts with every byte.
        threading.Thread(target=ask, daemon=True).start()
        try:
            return answer.result(self.patience.slow_seconds)
        except TimeoutError:
            if answer.done():  # the error of a socket
                raise
            answer.add_done_callback(lambda late: late.exception() or late.result().close())
            seconds = self.patience.slow_seconds
            raise AddressError(f"{self.url}: no complete headers within {seconds:g} s; try again later") from None

    def _check_status(self, response: requests.Response) -> None:
        status = response.status_code
        # The part is longer than the file, which has changed on the server.
        if status == 416:
            self.clear()
            raise _TemporaryError(f"{self.url}: HTTP 416, the partial file does not match")
        if status in TEMPORARY_STATUS:
            seconds = response.headers.get("Retry-After", "")
            wait_seconds = float(seconds) if seconds.isdecimal() else 0.0
            raise _TemporaryError(f"{self.url}: HTTP {status}", wait_seconds)
        if status not in (200, 206):
            raise AddressError(f"{self.url}: HTTP {status}")

    def _store(self, response: requests.Response, start: int) -> None:
        """Write the body from byte `start`. If the connection breaks, received data are kept."""
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        patience = self.patience
        since = time.monotonic()
        n_before = start
        with (
            open(self.part, "r+b" if start else "wb") as file,
            tqdm(desc=self.part.stem, initial=start, total=total, unit="B", unit_scale=True, disable=None) as bar,
        ):
            file.seek(start)
            # `iter_content` waits for complete chunks, which takes too long at a byte per minute.
            for chunk in iter(partial(response.raw.read1, CHUNK_BYTES, decode_content=True), b""):
                file.write(chunk)
                bar.update(len(chunk))
                n_bytes = file.tell()
                if max(n_bytes, total or 0) > self.most_bytes:
                    self.clear()
                    raise AddressError(f"{response.url}: sent more than {self.most_bytes:,} bytes")
                # A server can send very little data, but too often for a timeout.
                if time.monotonic() - since >= patience.slow_seconds:
                    if n_bytes - n_before < patience.slow_bytes:
                        raise AddressError(
                            f"{response.url}: sends less than {patience.slow_bytes:,} bytes in "
                            f"{patience.slow_seconds:g} s; the received part is kept, try again later"
                        )
                    since = time.monotonic()
                    n_before = n_bytes
            # After starting over, the part on disk can be longer than the response.
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
            # Some versions of urllib3 accept a truncated body.
            if total is not None and file.tell() < total and "Content-Encoding" not in response.headers:
                raise requests.ConnectionError("short body")
