"""The archive for executors, and the libraries that they must have."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from penstock.app import load_app
from penstock.spark.session.shipping import NEEDED_MODULES, Shipment, shipment_of, write_archive

SHOP = """
from penstock import App
from ship_parts.prices import double

app = App("shop")

@app.consume("orders", to="doubled")
def handle(value: int) -> int:
    return double(value)
"""


@pytest.fixture
def shipment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shipment:
    (tmp_path / "ship_shop.py").write_text(SHOP)
    (tmp_path / "ship_parts").mkdir()  # without __init__.py
    (tmp_path / "ship_parts" / "prices.py").write_text("def double(value):\n    return value * 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    try:
        return shipment_of(load_app("ship_shop:app"))
    finally:
        for name in ("ship_shop", "ship_parts", "ship_parts.prices"):
            sys.modules.pop(name, None)


def test_it_holds_the_app_what_it_imports_and_penstock(shipment: Shipment, tmp_path: Path) -> None:
    write_archive(shipment, tmp_path / "app.zip")
    names = ZipFile(tmp_path / "app.zip").namelist()
    assert {"ship_shop.py", "ship_parts/", "ship_parts/prices.py", "penstock/__init__.py", "penstock/py.typed"} <= {
        *names
    }
    assert not [name for name in names if "__pycache__" in name]
    assert shipment.own() == ["ship_parts", "ship_shop"]
    assert shipment.modules == ("ship_shop",)


def test_another_python_can_run_the_handler_from_the_archive_alone(shipment: Shipment, tmp_path: Path) -> None:
    archive, elsewhere = tmp_path / "app.zip", tmp_path / "elsewhere"
    write_archive(shipment, archive)
    elsewhere.mkdir()
    program = (
        "import sys; sys.path.insert(1, sys.argv[1]); import penstock, penstock.spark.tasks.run_slices, ship_shop;"
        "print(ship_shop.handle(21), penstock.__file__, ship_shop.__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, archive], cwd=elsewhere, env={}, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["42", f"{archive}/penstock/__init__.py", f"{archive}/ship_shop.py"], done.stderr


def test_the_same_code_gives_the_same_archive(shipment: Shipment, tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        write_archive(shipment, tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_what_executors_need_is_listed_with_versions(shipment: Shipment) -> None:
    named = {line.partition("==")[0].lower().replace("_", "-") for line in shipment.requirements}
    assert {"confluent-kafka", "msgspec", "pandas", "platformdirs", "pyarrow"} <= named
    assert all("==" in line for line in shipment.requirements)
    assert shipment.python == f"{sys.version_info.major}.{sys.version_info.minor}"
    assert shipment.spark_packages == (), "handlers need no jars"


def test_the_needed_modules_are_all_that_a_task_imports() -> None:
    """Otherwise an executor that has all of them would still fail at the first record."""
    program = (
        "import sys, sysconfig, penstock.spark.tasks.run_slices as _;"
        "site = sysconfig.get_paths()['purelib'];"
        "print(*{name.partition('.')[0] for name, module in list(sys.modules.items())"
        " if str(getattr(module, '__file__', '') or '').startswith(site)})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {name for name in done.stdout.split() if not name.startswith("_")}
    assert "confluent_kafka" in imported
    assert "py4j" not in imported
    needs = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(NEEDED_MODULES)}, sys; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert imported <= {name.partition(".")[0] for name in needs.stdout.split()}
