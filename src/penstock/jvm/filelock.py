"""A lock between processes. The kernel releases it when its holder dies."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import SetupError
from penstock.jvm.private_files import create_folder

_RETRY_SECONDS = 0.1


@contextmanager
def exclusive(path: Path, *, timeout: float, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock for the block. ``on_wait`` is called once if another process holds it."""
    create_folder(path.parent)
    # The file stays when the lock is released: removing it would let two processes lock two different files.
    with path.open("ab") as file:
        _acquire(file.fileno(), path, timeout=timeout, on_wait=on_wait)
        yield


def _acquire(handle: int, path: Path, *, timeout: float, on_wait: Callable[[], None]) -> None:
    deadline = time.monotonic() + timeout
    waiting = False
    while not _try_lock(handle):
        if not waiting:
            on_wait()
            waiting = True
        if time.monotonic() > deadline:
            raise SetupError(
                f"Another penstock process has held {path} for more than {timeout:.0f} seconds.",
                hint="Find it with `ps -ef | grep penstock`, end it if it hangs, then run the command again.",
            )
        time.sleep(_RETRY_SECONDS)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
