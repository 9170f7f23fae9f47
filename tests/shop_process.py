"""An app that runs as a separate process, which a test can kill, and what it wrote."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class ShopProcess:
    """``template`` is the module of the app; ``values`` fill it in."""

    def __init__(self, template: str, folder: Path, brokers: str, **values: str) -> None:
        self._folder, self._env = folder, {**os.environ, "PENSTOCK_BROKERS": brokers}
        (folder / "shop.py").write_text(template.format(**values))

    @contextmanager
    def run(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "penstock", "run", "shop:app", "--events", "events.jsonl", *arguments]
        process = subprocess.Popen(command, cwd=self._folder, env=self._env, stderr=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def events(self, kind: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.lines("events.jsonl")]
        return [event for event in found if event["event"] == kind]

    def seen(self) -> list[list[int]]:
        """The numbers of each line that the handler wrote to the file ``seen``."""
        return [[*map(int, line.split())] for line in self.lines("seen")]

    def lines(self, name: str) -> list[str]:
        file = self._folder / name
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        # The process may still write the last line, or may have been killed while it wrote it.
        return [line for line in lines if line.endswith("\n")]
