"""One trainer per folder: a file that stays locked while the trainer lives.

The operating system releases the lock with the process. After `kill -9` it is gone, and nothing has to be removed by
hand.
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
from docmt.files import describe_disk_full, read_facts

log = logging.getLogger(__name__)

FILE_NAME = "running.json"
TRIES = 10  # attempts to lock: `docmt status`, or a trainer that is about to end, holds the lock for a moment
SECONDS_BETWEEN_TRIES = 0.2
UNSUPPORTED = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}


class FolderLock:
    """A context manager that locks a folder, created if missing. `running.json` in the folder describes the holder.

    Keys: host, pid, job (Slurm job id, or null) and started (UTC, ISO 8601).
    """

    def __init__(self, folder: Path) -> None:
        self.path = Path(folder) / FILE_NAME
        self.lock = FileLock(self.path, poll_interval=SECONDS_BETWEEN_TRIES, fallback_to_soft=False)

    def __enter__(self) -> Self:
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self.lock.acquire(timeout=TRIES * SECONDS_BETWEEN_TRIES)
        except Timeout:
            holder = read_status(folder)  # empty while the other one is about to write it
            pid, job = holder.get("pid"), holder.get("job")
            stop = f" with `scancel {job}`" if job else f" with `kill {pid}` there" if pid else ""
            host, started = (holder.get(key, "unknown") for key in ("host", "started"))
            raise UserError(
                f"{folder}: another training is running here: host {host}, process {pid or 'unknown'}, job "
                f"{job or 'none'}, since {started}: wait for it, or stop it{stop}; it saves a checkpoint, from "
                "which the next run resumes"
            ) from None
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            log.warning(
                "%s: this file system does not support locks (%s): make sure that no other training uses the folder",
                folder,
                error.strerror,
            )
        content = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "job": os.environ.get("SLURM_JOB_ID"),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # Into the locked file itself: a file that replaces it would not be locked.
        with describe_disk_full(self.path):
            self.path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        self.lock.release()


def read_status(folder: Path, name: str = FILE_NAME) -> dict[str, Any]:
    """Read a trainer's JSON file. Empty if it is missing or incomplete."""
    return read_facts(Path(folder) / name)


def is_running(folder: Path) -> bool:
    """True if a trainer holds the folder now.

    Not all file systems share locks between hosts, so a trainer on another host may go unnoticed.
    """
    try:
        file = os.open(Path(folder) / FILE_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        # A shared lock, which `filelock` lacks, needs no write permission and disturbs no other reader.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no locks on this file system
        return bool(read_status(folder))
    finally:
        os.close(file)
    return False
