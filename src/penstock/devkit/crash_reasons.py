"""Finds out from its log why a server died."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ServerError

_TAIL_LINES = 12
_TAIL_WIDTH = 200
_TAIL_BYTES = 64 << 10
_FRAME = re.compile(r"\s+(?:at |\.\.\. \d+ more)")


@dataclass(frozen=True)
class Cause:
    sign: re.Pattern[str]
    what: str
    advice: str


class PortInUseError(ServerError):
    """A server ended because another program took one of its ports first."""


_PORT_IN_USE = Cause(
    re.compile(r"BindException|Address already in use|is already in use|seems to be in use"),
    "a port it needs is in use",
    "Run the command again: it looks for free ports. If you gave --port, choose another.",
)
_CAUSES = (
    _PORT_IN_USE,
    Cause(
        re.compile(r"No space left on device|Disk quota exceeded"),
        "the disk is full",
        "Free some space, or put the data on another disk with --data DIR.",
    ),
    Cause(
        re.compile(r"OutOfMemoryError|Could not reserve enough space|insufficient memory|Cannot allocate memory"),
        "it ran out of memory",
        "Give it more with --memory 1g, or close other programs.",
    ),
    Cause(
        re.compile(r"Failed to acquire lock on file|Database may be already in use"),
        "another server uses the same data folder",
        "Stop that one, or choose another folder with --data DIR.",
    ),
    Cause(
        re.compile(r"InconsistentClusterId|[Cc]luster[. ]id.*(?:doesn't match|does not match|mismatch|differ)"),
        "the data folder belongs to another cluster",
        "Choose another folder with --data DIR, or delete this one with `penstock down --wipe`.",
    ),
    Cause(
        re.compile(r"meta\.properties|[Nn]ode[. ]id.*(?:doesn't match|does not match|mismatch)|KafkaStorageException"),
        "the data folder is damaged",
        "Choose another folder with --data DIR, or delete this one with `penstock down --wipe`.",
    ),
    Cause(
        re.compile(r"AccessDeniedException|Permission denied|Read-only file system"),
        "it has no permission to write to its folders",
        "Make them writable, or choose others with --data DIR and PENSTOCK_HOME.",
    ),
)


def find_cause(log: str) -> Cause | None:
    return next((cause for cause in _CAUSES if cause.sign.search(log)), None)


def death(role: str, exit_code: int | None, logs: list[Path]) -> ServerError:
    """Return the error for a server that ended, with the cause if its logs show one, and their last lines."""
    cause = find_cause("\n".join(line for log in logs for line in _last_lines(log) if " INFO " not in line))
    if cause:
        what, advice = cause.what, cause.advice
    elif exit_code == -signal.SIGKILL:
        what = "it was killed from outside"
        advice = "The system kills processes when it runs out of memory: close other programs, or use --memory 256m."
    else:
        what, advice = "see its log", "The end of the log is below. `penstock up` tries again on the same data."
    shown = "\n".join(filter(None, (tail(log) for log in logs)))
    kind = PortInUseError if cause is _PORT_IN_USE else ServerError
    return kind(f"{role} ended during its start: {what}.", hint=f"{advice}\nThe end of its log:\n{shown}")


def tail(log: Path) -> str:
    """Return the last lines of a log, limited in number and width."""
    return "\n".join(f"  {line[:_TAIL_WIDTH]}" for line in _last_lines(log)[-_TAIL_LINES:])


def _last_lines(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    # Leave out stack frames, which would displace the informative lines.
    return [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
