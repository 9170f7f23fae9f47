"""`penstock run` takes options from a file, the environment and flags."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, produce, read_values

SHOP = """
from penstock import App

app = App("{group}", settings={{"sasl.password": "hunter2"}})

@app.consume("{source}", to="{group}.out")
def double(value: int) -> int:
    return value * 2
"""

FILE = """
[settings]
session.timeout.ms = 6000

[handlers.double]
commit_every = "100ms"
"""


def run(folder: Path, *arguments: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "run", "shop:app", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path, group: str) -> Path:
    (tmp_path / "shop.py").write_text(SHOP.format(group=group, source="no-such-topic"))
    (tmp_path / "penstock.toml").write_text(FILE)
    return tmp_path


def test_print_config_shows_what_is_in_effect_and_connects_to_nothing(folder: Path) -> None:
    arguments = ("-b", "127.0.0.1:1", "--set", "double.order=key", "--print-config")
    code, out, err = run(folder, *arguments, PENSTOCK_DOUBLE_CONCURRENCY="7")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["brokers", "127.0.0.1:1", "--brokers"] in lines
    assert ["session.timeout.ms", "6000", "penstock.toml", "line", "3"] in lines
    assert ["commit_every", "100ms", "penstock.toml", "line", "6"] in lines
    assert ["concurrency", "7", "PENSTOCK_DOUBLE_CONCURRENCY"] in lines
    assert ["order", "key", "--set", "double.order"] in lines
    assert ["sasl.password", "***", "code"] in lines
    assert "hunter2" not in out
    code, out, err = run(folder, *arguments, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["handlers"][0]["options"]["order"] == {"value": "key", "from": "--set double.order"}


@pytest.mark.parametrize(
    ("arguments", "problem", "next_step"),
    [
        (["--set", "settings.sesion.timeout.ms=5"], "'sesion.timeout.ms' is not known", "'session.timeout.ms'?"),
        (["--set", "settings.session.timeout.ms=soon"], "session.timeout.ms='soon' is not a number", "milliseconds"),
        (["--set", "dubble.concurrency=5"], "no handler or option 'dubble'", "double.concurrency"),
        (["--config", "none.toml"], "none.toml cannot be read", "--config"),
    ],
)
def test_a_wrong_option_is_one_clear_error_before_anything_connects(
    folder: Path, arguments: Sequence[str], problem: str, next_step: str
) -> None:
    code, out, err = run(folder, "-b", "127.0.0.1:1", *arguments)
    assert (code, out) == (2, "")
    assert problem in err
    assert next_step in err
    assert "Traceback" not in err


def test_a_run_uses_these_options(tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic) -> None:
    source = make_topic(1)
    produce(brokers, source, [1, 2, 3])
    (tmp_path / "shop.py").write_text(SHOP.format(group=group, source="elsewhere"))
    (tmp_path / "penstock.toml").write_text(f'brokers = "{brokers}"\n{FILE}topics = ["{source}"]\n')
    settings = ("--set", f"to={group}.mine", "--set", "settings.fetch.max.wait.ms=10")
    code, _, err = run(tmp_path, "--until-caught-up", *settings)
    assert code == 0, err
    assert sorted(int(value or 0) for value in read_values(brokers, f"{group}.mine")) == [2, 4, 6]
