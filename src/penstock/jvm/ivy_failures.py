"""From a page of Ivy's output to the one sentence that helps."""

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError
from penstock.jvm.folders import disk_full

_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_UNREACHABLE = re.compile(r"^\s*HttpClientHandler: (.+?)(?: url=\S+)?$", re.MULTILINE)
_REFUSED = re.compile(r"^\s*(?:SERVER|CLIENT) ERROR: (.+?)(?: url=\S+)?$", re.MULTILINE)
_BROKEN = re.compile(r"\[FAILED\s*\] \S+?#\S+?;\S+?!(\S+?): (.+?)(?: \(\d+ms\))?$", re.MULTILINE)
_UNKNOWN = re.compile(r"^\s*:: (\S+?)#(\S+?);(\S+?): (?:not found|.*configuration not found)", re.MULTILINE)
_NOISE = re.compile(r"^\s*(?:$|[:|.\-=]|at |confs:|found |downloading |\[SUCCESSFUL)")
_SECRETS = re.compile(r"//[^/\s@]+@")

_RETRY_HINT = "Check the network (behind a mirror, set PENSTOCK_MAVEN_URL to it), then run the command again."


@dataclass(frozen=True)
class Failure:
    """``passing`` is true where a second attempt may do better."""

    error: SetupError
    passing: bool = False


def explain(title: str, output: str, *, cache: Path) -> Failure:
    """Say why the fetch of ``title`` failed.

    The order matters: without a network, Ivy also reports every module as not found.
    """
    output = _SECRETS.sub("//", output)
    if _NO_SPACE.search(output):
        return Failure(disk_full(cache, setting="PENSTOCK_CACHE"))
    if match := _UNREACHABLE.search(output):
        return Failure(
            SetupError(f"Cannot fetch {title}: the Maven registry is out of reach ({match[1]}).", hint=_RETRY_HINT),
            passing=True,
        )
    if match := _REFUSED.search(output):
        return Failure(
            SetupError(f"Cannot fetch {title}: the Maven registry answered {match[1]!r}.", hint=_RETRY_HINT),
            passing=True,
        )
    if match := _BROKEN.search(output):
        return Failure(
            SetupError(f"Cannot fetch {title}: {match[1]} arrived damaged ({match[2]}).", hint=_RETRY_HINT),
            passing=True,
        )
    if match := _UNKNOWN.search(output):
        return Failure(
            SetupError(
                f"Cannot fetch {title}: the Maven registry has no {match[1]}:{match[2]}:{match[3]}.",
                hint="Check the name and the version; a mirror (PENSTOCK_MAVEN_URL) may also hold only a part.",
            )
        )
    return Failure(SetupError(f"Cannot fetch {title}: {_last_words(output)}.", hint=_RETRY_HINT))


def _last_words(output: str) -> str:
    spoken = [line.strip() for line in output.splitlines() if not _NOISE.match(line)]
    return spoken[-1].rstrip(".") if spoken else "Ivy ended without a word"
