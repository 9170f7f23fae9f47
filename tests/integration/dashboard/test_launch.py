"""``penstock ui --open`` signs the browser in, and the list of processes does not show the link."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import expect

from chromium import Chromium
from kafka_helpers import WAIT_SECONDS, wait_for

_BROWSER = """#!/bin/sh
echo "$@" > {said}.new && mv {said}.new {said}
"""


def test_the_browser_that_was_opened_is_signed_in(chromium: Chromium, brokers: str, tmp_path: Path) -> None:
    browser, said = tmp_path / "browser", tmp_path / "said"
    browser.write_text(_BROWSER.format(said=said), "utf-8")
    browser.chmod(0o700)
    home = tmp_path / "home of mine"
    command = [sys.executable, "-m", "penstock", "ui", "--open", "--brokers", brokers]
    environment = {**os.environ, "BROWSER": f"{browser} %s", "PENSTOCK_HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            token = process.stdout.readline().decode().strip().rpartition("token=")[2]
            wait_for(said.exists, "the browser")
            address = said.read_text("utf-8").strip()
            assert token
            assert token not in address
            (file,) = (home / "launch").iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            with chromium.in_use() as started:
                window = started.new_context()
                page = window.new_page()
                page.set_default_timeout(WAIT_SECONDS * 1000)
                page.goto(address)
                expect(page.get_by_role("heading", level=1)).to_have_text("Groups")
                assert "token" not in page.url
                window.close()
        finally:
            process.terminate()
            process.wait(WAIT_SECONDS)
    assert not file.exists()
