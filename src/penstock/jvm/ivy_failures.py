"""From a page of Ivy's output to the one sentence that helps."""

import re
from pathlib import Path

from penstock.jvm.failures import Failure, damaged, failed, out_of_reach, refused, unknown
from penstock.jvm.folders import disk_full

_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_UNREACHABLE = re.compile(r"^\s*HttpClientHandler: (.+?)(?: url=\S+)?$", re.MULTILINE)
_REFUSED = re.compile(r"^\s*(?:SERVER|CLIENT) ERROR: (.+?)(?: url=\S+)?$", re.MULTILINE)
_BROKEN = re.compile(r"\[FAILED\s*\] \S+?#\S+?;\S+?!(\S+?): (.+?)(?: \(\d+ms\))?$", re.MULTILINE)
_UNKNOWN = re.compile(r"^\s*:: (\S+?)#(\S+?);(\S+?): (?:not found|.*configuration not found)", re.MULTILINE)
_NOISE = re.compile(r"^\s*(?:$|[:|.\-=]|at |confs:|found |downloading |\[SUCCESSFUL)")
_SECRETS = re.compile(r"//[^/\s@]+@")


def explain(title: str, output: str, *, cache: Path) -> Failure:
    """Say why the fetch of ``title`` failed.

    The order matters: without a network, Ivy also reports every module as not found.
    """
    output = _SECRETS.sub("//", output)
    if _NO_SPACE.search(output):
        return Failure(disk_full(cache, setting="PENSTOCK_CACHE"))
    if match := _UNREACHABLE.search(output):
        return out_of_reach(title, match[1])
    if match := _REFUSED.search(output):
        return refused(title, match[1])
    if match := _BROKEN.search(output):
        return damaged(title, match[1], match[2])
    if match := _UNKNOWN.search(output):
        return unknown(title, f"{match[1]}:{match[2]}:{match[3]}")
    return failed(title, _last_words(output))


def _last_words(output: str) -> str:
    spoken = [line.strip() for line in output.splitlines() if not _NOISE.match(line)]
    return spoken[-1].rstrip(".") if spoken else "Ivy ended without a word"
