"""Finds a Java that is new enough. It is the one thing that Penstock cannot install."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from penstock.errors import SetupError

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_ANSWER_SECONDS = 30
_INSTALL_HINT = (
    f"Install Java {OLDEST_JAVA} or newer (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; "
    "macOS: `brew install openjdk`), or set JAVA_HOME to one."
)


def find_java() -> Path:
    """Return the ``java`` of ``JAVA_HOME``, else the first on the ``PATH``. Raise if it does not run or is too old."""
    java = _locate()
    found = java_version(_ask_version(java))
    if found is None:
        raise SetupError(f"{java} -version did not print a Java version.", hint=_INSTALL_HINT)
    if found < OLDEST_JAVA:
        raise SetupError(
            f"{java} is Java {found}, but Kafka and Spark need Java {OLDEST_JAVA} or newer.", hint=_INSTALL_HINT
        )
    return java


def java_version(announcement: str) -> int | None:
    """Parse the major version from the output of ``java -version``. Java 8 prints 1.8."""
    match = _VERSION.search(announcement)
    return int(match[1]) if match else None


def _locate() -> Path:
    if home := os.environ.get("JAVA_HOME"):
        java = Path(home) / "bin" / "java"
        if not java.is_file():
            raise SetupError(f"JAVA_HOME is {home}, but there is no bin/java in it.", hint=_INSTALL_HINT)
        return java
    found = shutil.which("java")
    if found is None:
        raise SetupError("Java is not installed, or not on the PATH.", hint=_INSTALL_HINT)
    return Path(found)


def _ask_version(java: Path) -> str:
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, errors="replace", timeout=_ANSWER_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{java} does not run: {error}.", hint=_INSTALL_HINT) from error
    announcement = answer.stderr + answer.stdout
    if answer.returncode != 0:
        reason = announcement.strip().splitlines()[0] if announcement.strip() else f"exit code {answer.returncode}"
        raise SetupError(f"{java} does not run: {reason}.", hint=_INSTALL_HINT)
    return announcement
