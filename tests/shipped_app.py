"""An app whose code must be shipped. Its outputs say where each task imported it from."""

import os
import subprocess
import sys
from pathlib import Path

from kafka_helpers import read_values

RECORDS = 200

SHOP = """
import os, sys
import penstock
from penstock import App, Reject
from shop_parts.prices import double

app = App("{group}")

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq")
def price(value: int) -> str:
    import shop_late
    if value < 0:
        raise Reject("negative")
    return f"{{double(value)}} {{os.path.abspath(shop_late.__file__)}} {{penstock.__file__}} {{sys.executable}}"
"""
PRICES = """
from importlib import resources

FACTOR = int((resources.files(__package__) / "factor.txt").read_text())

def double(value):
    return value * FACTOR
"""


class Shop:
    """An app in a folder that is not on the Python path."""

    def __init__(self, folder: Path, brokers: str, group: str, source: str) -> None:
        self.folder, self.brokers, self.group, self.source = folder, brokers, group, source
        self.environment = {**os.environ, "PENSTOCK_BROKERS": brokers}
        parts = folder / "shop_parts"
        parts.mkdir(parents=True)
        (folder / "shop.py").write_text(SHOP.format(group=group, source=source))
        (folder / "shop_late.py").write_text("")
        (parts / "__init__.py").write_text("")
        (parts / "prices.py").write_text(PRICES)
        (parts / "factor.txt").write_text("2")

    def penstock(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.call(sys.executable, "-m", "penstock", *arguments)

    def call(self, *command: str | Path, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def outputs(self) -> list[list[str]]:
        return [(value or b"").decode().split() for value in read_values(self.brokers, f"{self.group}.out")]
