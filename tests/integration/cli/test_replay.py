"""`penstock run --from ... --to ...` and `penstock debug`, as users run them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_helpers import Answer, Penstock
from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, produce, read_values
from penstock.kafka import Cluster

SHOP = """
from penstock import App, Record, Reject, Retry

app = App("{group}")

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq", retry=Retry(attempts=2, first="1h"))
def double(value: int, record: Record) -> int:
    if value < 0:
        raise Reject("negative")
    if value == 0:
        raise ValueError("\\x1b[31mzero")
    return value * 2
"""


@pytest.fixture
def penstock(
    brokers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Penstock:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return Penstock(brokers, monkeypatch, capsys)


@pytest.fixture
def shop(tmp_path: Path, group: str, make_topic: MakeTopic) -> tuple[str, str]:
    """The reference of the app, in a module with a name of its own, and the source."""
    module, source = group.replace("-", "_"), make_topic(2)
    (tmp_path / f"{module}.py").write_text(SHOP.format(group=group, source=source))
    return f"{module}:app", source


@pytest.fixture
def debug(penstock: Penstock, shop: tuple[str, str]) -> Callable[..., Answer]:
    def run(at: str, *arguments: str, ok: bool = True) -> Answer:
        return penstock("debug", shop[0], "--at", at, *arguments, ok=ok)

    return run


def test_a_replay_says_what_it_does_and_ends_with_0(
    penstock: Penstock, shop: tuple[str, str], brokers: str, cluster: Cluster, group: str
) -> None:
    reference, source = shop
    produce(brokers, source, [1, 2, 3])
    said = penstock("run", reference, "--from", f"{source}:0=1", "--to", "latest").err
    assert f"Starting the replay of up to 2 records as group {group}-replay-" in said
    assert f"double: {source}[0] from 1 up to 3: up to 2 records" in said
    assert "double: stopped: 2 read, 2 written" in said
    assert "The range is finished; deleted" in said
    assert sorted(read_values(brokers, f"{group}.out"), key=str) == [b"4", b"6"]
    assert committed(cluster, group, source) == {}


def test_a_dry_run_in_json_has_the_counts_and_the_ranges(
    penstock: Penstock, shop: tuple[str, str], brokers: str, cluster: Cluster, group: str
) -> None:
    reference, source = shop
    produce(brokers, source, [1, -2, 3])
    found = penstock.json("run", reference, "--from", "earliest", "--dry-run")
    (stopped,) = found["stopped"]
    assert (stopped["read"], stopped["written"], stopped["dead_lettered"]) == (3, 2, 1)
    assert found["replay"]["dry_run"] is True
    assert [(each["partition"], each["start"], each["end"]) for each in found["replay"]["ranges"]] == [
        (0, 0, 3),
        (1, 0, 0),
    ]
    assert not {f"{group}.out", f"{group}.dlq"} & cluster.topics().keys()
    said = penstock("run", reference, "--from", "earliest", "--dry-run").err
    assert "Dry run over up to 3 records" in said
    assert "3 read, 2 outputs and 1 dead letter not written, 0 skipped" in said


def test_an_empty_range_is_a_success(penstock: Penstock, shop: tuple[str, str]) -> None:
    assert "The range has no records" in penstock("run", shop[0], "--from", "earliest").err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--dry-run",), "--dry-run is for replays of a range"),
        (("--to-topic", "x"), "--to-topic is for replays of a range"),
        (("--from", "earliest", "--until-caught-up"), "run the app once over a range"),
        (("--from", "earliest", "--for", "1m"), "--for cannot be combined"),
        (("--from", "earliest", "--handler", "doubel"), "has no handler 'doubel'"),
        (("--from", "noon"), "'noon' is not a position in a log"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: tuple[str, ...], problem: str, penstock: Penstock, shop: tuple[str, str]
) -> None:
    answer = penstock("run", shop[0], *arguments, ok=False)
    assert answer.code == 2
    assert problem in answer.err


def test_debug_shows_the_record_and_each_attempt_and_writes_nothing(
    debug: Callable[..., Answer], shop: tuple[str, str], brokers: str, cluster: Cluster, group: str
) -> None:
    source = shop[1]
    produce(brokers, source, [4, 0], key=b"anna", partition=1)
    good = debug(f"{source}:1@0").out
    assert f"record  {source}[1]@0" in good
    assert "value   4" in good
    assert "key     anna" in good
    assert "finished" in good
    assert f"would write to {group}.out: key anna, value 8" in good
    bad = debug(f"{source}[1]@1").out
    assert bad.count("failed: ValueError: ") == 2
    assert 'raise ValueError("' in bad
    assert "next attempt after" in bad
    assert f"would write to {group}.dlq: key anna, value 0" in bad
    assert "\x1b[31m" not in bad, "foreign text is escaped"
    assert not {f"{group}.out", f"{group}.dlq"} & cluster.topics().keys()
    assert committed(cluster, group, source) == {}


def test_debug_in_json(penstock: Penstock, shop: tuple[str, str], brokers: str, group: str) -> None:
    reference, source = shop
    produce(brokers, source, [-1])
    found = penstock.json("debug", reference, "--at", f"{source}:0@0")
    assert (found["handler"], found["record"]["offset"], found["record"]["value"]) == ("double", 0, -1)
    (attempt,) = found["attempts"]
    assert (attempt["outcome"], attempt["error_type"], attempt["then"]) == (
        "failed",
        "Reject",
        f"dead letter to {group}.dlq",
    )
    assert "raise Reject" in attempt["traceback"]
    assert attempt["writes"][0]["headers"]["penstock-dlq-error-message"] == "negative"


def test_debug_of_a_record_that_is_not_there_is_one_clear_error(
    debug: Callable[..., Answer], shop: tuple[str, str], brokers: str
) -> None:
    source = shop[1]
    produce(brokers, source, [1])
    for at, problem in {
        f"{source}:0@1": "is not written yet: the log ends at 1",
        f"{source}:7@0": "has no partition 7",
        "nowhere:0@0": "consumes nowhere[0]",
        "orders": "does not name a record",
    }.items():
        answer = debug(at, ok=False)
        assert answer.code in (2, 4)
        assert problem in answer.err


@pytest.mark.parametrize(("flag", "place"), [("--pdb", 'raise Reject("negative")'), ("--step", "if value < 0:")])
def test_the_debugger_opens_where_the_handler_raised_or_begins(
    flag: str, place: str, shop: tuple[str, str], brokers: str, tmp_path: Path
) -> None:
    reference, source = shop
    produce(brokers, source, [-1])
    ended = subprocess.run(
        [sys.executable, "-m", "penstock", "debug", reference, "--at", f"{source}:0@0", flag, "--brokers", brokers],
        cwd=tmp_path,
        input="p value\nq\n",
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert f"-> {place}" in ended.stdout
    assert "(Pdb) -1" in ended.stdout
    assert json.dumps("attempt 2") not in ended.stdout
