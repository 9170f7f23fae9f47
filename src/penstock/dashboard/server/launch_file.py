"""Opens the dashboard in the browser without showing its token to other users.

A program's arguments are in the list of processes, which every user of the machine can read. So the browser is given a
file that only this user can read, and the file leads it to the link.
"""

import os
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path

from penstock.jvm.private_files import make_private, open_private
from penstock.paths import launch_path, state_home

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Penstock</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url={link}">
<p><a href="{link}">Open the dashboard</a></p></html>
"""


@contextmanager
def opened_in_browser(link: str) -> Iterator[bool]:
    """Open the link in the browser. The file exists for the block. Yields whether a browser was started."""
    path = launch_path(os.getpid())
    try:
        yield _write(path, link) and webbrowser.open(path.as_uri())
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _write(path: Path, link: str) -> bool:
    try:
        make_private(path.parent, home=state_home())
        path.unlink(missing_ok=True)  # of an earlier process with this id
        with open_private(path, "x") as file:
            file.write(_PAGE.format(link=escape(link)))
    except OSError:
        return False
    return True
