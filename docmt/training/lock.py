"""One trainer per folder: a file that is locked for as long as the trainer lives.

The lock belongs to the process, not to the file: after `kill -9` it is gone, and nothing has to be removed by hand.
"""

import errno
import fcntl
import json
import logging
import os
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from docmt.errors import UserError

log = logging.getLogger(__name__)

FILE_NAME = "running.json"
TRIES = 10
"""A look of `docmt status`, or a trainer that is just ending, holds the lock for a moment: ask again so often."""
SECONDS_BETWEEN_TRIES = 0.2
UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """Holds a folder, as a context manager; `running.json` in it says who does.

    Its keys: host, pid, job (of Slurm, or null), restarts (of that job, when there were any), started (UTC, ISO 8601)
    and devices.

    Args:
        folder: made when it is missing.
        devices: number of devices that train.

    Raises:
        UserError: another trainer holds the folder; names its host, process and job.
    """

    def __init__(self, folder: Path, *, devices: int = 1) -> None:
        self.path = Path(folder) / FILE_NAME
        self.devices = devices
        self.file: int | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for number in range(TRIES):
            self.file = self._lock()
            if self.file is not None:
                break
            if number + 1 < TRIES:
                time.sleep(SECONDS_BETWEEN_TRIES)
        else:
            raise UserError(self._refusal())
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, json.dumps(self._content(), indent=1).encode() + b"\n", 0)
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.file)

    def _lock(self) -> int | None:
        """The open file, locked; None when somebody else holds it."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_file(file, self.path):
                return file
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                os.close(file)
                raise
            log.warning(
                "%s: this file system has no locks (%s): make sure that no second trainer uses the folder",
                self.path.parent,
                error.strerror,
            )
            return file
        os.close(file)
        return None

    def _content(self) -> dict[str, Any]:
        restarts = os.environ.get("SLURM_RESTART_COUNT")
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "job": os.environ.get("SLURM_JOB_ID"),
            **({"restarts": int(restarts)} if restarts else {}),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "devices": self.devices,
        }

    def _refusal(self) -> str:
        holder = read_running(self.path.parent)
        job = holder.get("job")
        stop = f"`scancel {job}`" if job else f"`kill {holder.get('pid', 'PID')}` there"
        return (
            f"{self.path.parent}: another trainer works here: host {holder.get('host', 'unknown')}, process "
            f"{holder.get('pid', 'unknown')}, job {job or 'none'}, since {holder.get('started', 'unknown')}: "
            f"wait for it, or stop it with {stop}; it saves a checkpoint and the next call goes on from there"
        )


def read_running(folder: Path) -> dict[str, Any]:
    """What `running.json` says, whether its writer still lives or not; empty when there is none."""
    try:
        content = json.loads((Path(folder) / FILE_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def is_running(folder: Path) -> bool:
    """Whether a trainer holds the folder now. Locks do not reach across hosts on every file system."""
    try:
        file = os.open(Path(folder) / FILE_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return bool(read_running(folder))
    finally:
        os.close(file)
    return False


def _is_file(file: int, path: Path) -> bool:
    """Whether the open file is still the one under this name: the holder before may have just removed it."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False
