"""axe-core, which finds what keeps people from using a page. It comes from npm once, and stays in the user's cache."""

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from penstock.jvm.filelock import exclusive
from penstock.paths import cache_home

_VERSION = "4.10.3"
_INTEGRITY = "sha512-Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
_MISSING = (
    "npm was not found, and the tests of the dashboard get axe-core, which checks accessibility, with it. "
    "Install npm (Debian: apt-get install npm)."
)
_SERIOUS = ("serious", "critical")
_DOWNLOAD_SECONDS = 300.0


def axe_source() -> str:
    """Return the JavaScript of axe-core. Download it first if it is not in the cache, and check what came."""
    folder = cache_home() / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"axe-core-{_VERSION}.tgz"
    with exclusive(folder / "lock", timeout=_DOWNLOAD_SECONDS, on_wait=lambda: None):
        if not package.exists():
            _download(package)
    content = package.read_bytes()
    if integrity(content) != _INTEGRITY:
        package.unlink()
        raise RuntimeError(f"{package.name} of npm is not what was expected: {integrity(content)}, not {_INTEGRITY}.")
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        source = files.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()


def integrity(content: bytes) -> str:
    return f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"


def serious_violations(page: Page, source: str, *rules: str) -> list[str]:
    """Return what axe-core finds on the page, a line each; with ``rules``, only by these."""
    if page.evaluate("() => typeof window.axe === 'undefined'"):
        page.evaluate(source)
    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: list[dict[str, Any]] = page.evaluate(
        "async (options) => (await axe.run(document, { ...options, resultTypes: ['violations'] })).violations", options
    )
    return [
        f"{each['id']}: {node['html'][:160]} ({node['failureSummary'].splitlines()[-1].strip()})"
        for each in found
        if each["impact"] in _SERIOUS
        for node in each["nodes"]
    ]


def _download(package: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(_MISSING)
    with tempfile.TemporaryDirectory(dir=package.parent) as folder:
        command = [npm, "pack", f"axe-core@{_VERSION}", "--silent", "--ignore-scripts"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS, check=False
        )
        made = Path(folder, package.name)
        if done.returncode or not made.exists():
            raise RuntimeError(f"npm could not get axe-core {_VERSION}: {done.stderr.strip()[-300:]}")
        made.replace(package)
