"""One trainer per folder: a file that stays locked as long as the trainer lives.

The operating system drops the lock with the process: after `kill -9` it is gone, and nothing has to be removed by hand.
"""

import errno
import fcntl
import json
import logging
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from docmt.errors import UserError

log = logging.getLogger(__name__)

FILE_NAME = "running.json"
TRIES = 10
"""`docmt status`, or a trainer that is about to end, holds the lock for a moment: try this often."""
SECONDS_BETWEEN_TRIES = 0.2
UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """Holds a folder, created if missing, as a context manager; `running.json` in the folder names the holder.

    Its keys: host, pid, job (of Slurm, or null), restarts (of that job, if any), started (UTC, ISO 8601) and devices.
    Raises UserError when another trainer holds the folder; names its host, process and job.
    """

    def __init__(self, folder: Path, *, devices: int = 1) -> None:
        self.path = Path(folder) / FILE_NAME
        self.devices = devices
        self.lock = FileLock(self.path, poll_interval=SECONDS_BETWEEN_TRIES, fallback_to_soft=False)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.lock.acquire(timeout=TRIES * SECONDS_BETWEEN_TRIES)
        except Timeout:
            raise UserError(self._refusal()) from None
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            log.warning(
                "%s: this file system does not support locks (%s): make sure that no second trainer uses the folder",
                self.path.parent,
                error.strerror,
            )
        self.path.write_text(json.dumps(self._content(), indent=1) + "\n", "utf-8")  # into the locked file
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        self.lock.release()

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
        holder = read_note(self.path.parent)
        job = holder.get("job")
        stop = f"`scancel {job}`" if job else f"`kill {holder.get('pid', 'PID')}` there"
        return (
            f"{self.path.parent}: another trainer is running here: host {holder.get('host', 'unknown')}, process "
            f"{holder.get('pid', 'unknown')}, job {job or 'none'}, since {holder.get('started', 'unknown')}: "
            f"wait for it, or stop it with {stop}; it saves a checkpoint, from which the next run resumes"
        )


def read_note(folder: Path, name: str = FILE_NAME) -> dict[str, Any]:
    """Read what a trainer noted in a folder, whether it is still alive or not; empty if there is no such file."""
    try:
        content = json.loads((Path(folder) / name).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def is_running(folder: Path) -> bool:
    """Whether a trainer holds the folder now. Not all file systems share locks between hosts.

    The shared lock needs no write permission and disturbs no other reader; `filelock` has no such lock.
    """
    try:
        file = os.open(Path(folder) / FILE_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return bool(read_note(folder))
    finally:
        os.close(file)
    return False
