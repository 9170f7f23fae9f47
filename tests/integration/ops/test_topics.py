"""Topics, and records to and from the terminal, on a real broker."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cli_helpers import Penstock
from kafka_helpers import WAIT_SECONDS, MakeTopic, produce, read_records, read_values, wait_for
from penstock.core.records.partitioner import partition_for
from penstock.kafka import make_producer
from terminals import terminal


def test_topics_are_created_listed_and_described(penstock: Penstock, brokers: str, make_topic: MakeTopic) -> None:
    topic = f"{make_topic(1)}-more"
    penstock("topics", "create", topic, "--partitions", "3", "--with", "retention.ms=3600000")
    assert penstock("topics", "create", topic, ok=False).code == 4
    now = time.time()
    producer = Producer({"bootstrap.servers": brokers})
    for age in (1800, 900, 10):
        producer.produce(topic, b"x", partition=0, timestamp=round((now - age) * 1000))
    assert producer.flush(WAIT_SECONDS) == 0
    (listed,) = penstock.json("topics", "ls", f"{topic}*")["topics"]
    assert (listed["max_records"], listed["skew"], listed["retention_seconds"]) == (3, 3.0, 3600)
    found = penstock.json("topics", "describe", topic)
    assert found["margin_seconds"] == pytest.approx(1800, abs=20)
    assert found["rate"] == pytest.approx(1 / 60)
    assert found["bytes"] == found["partitions"][0]["bytes"] > 0
    assert len(penstock("topics", "describe", topic).out.splitlines()) == 4 + 6


def test_hot_keys_are_shown_with_their_share_their_partition_and_remedies(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(4)
    producer = make_producer(brokers, settings={})
    for number in range(1_000):
        producer.produce(topic, b"x", key=b"whale" if number % 2 else b"customer-%d" % number)
    producer.produce(topic, b"x", partition=0)
    assert producer.flush(WAIT_SECONDS) == 0
    home = partition_for(b"whale", 4)
    found = penstock.json("topics", "keys", topic, "--scan", "--limit", "1")
    (hottest,) = found["keys"]
    assert hottest == {
        "key": "whale",
        "records": 500,
        "at_most": 500,
        "share": pytest.approx(500 / 1001),
        "partitions": [home],
    }
    assert (found["sample"], found["unkeyed"], found["strays"]) == (1_001, 1, [])
    assert found["distinct"] == pytest.approx(501, rel=0.1)
    assert [each["remedy"] for each in found["remedies"] if each["fits"]] == [
        "no order, or a share group",
        "salted keys",
    ]
    shown = penstock("topics", "keys", topic).out
    assert f"penstock topics keys {topic} --salt 8" in shown
    salted = penstock.json("topics", "keys", topic, "--salt", "8")
    assert salted["fullest_then"] < salted["fullest"]
    assert penstock.json("topics", "keys", topic, "--sample", "100")["sample"] < 110

    # The prediction for more partitions is right.
    then = penstock.json("topics", "keys", topic, "--scan", "--partitions", "8")["fullest_then"]
    assert penstock("topics", "grow", topic, "--partitions", "4", "--yes", ok=False).code == 2
    refused = penstock("topics", "grow", f"{topic}x", "--partitions", "9", ok=False)
    assert f"Did you mean '{topic}'?" in refused.err, "the error comes before the confirmation"
    assert penstock.json("topics", "grow", topic, "--partitions", "8", "--yes")["before"] == 4
    again = make_topic(8)
    for record in read_records(brokers, topic):
        producer.produce(again, b"x", key=record.key)
    assert producer.flush(WAIT_SECONDS) == 0
    counts = penstock.json("topics", "keys", again, "--scan")["partitions"]
    assert max(counts) / sum(counts) == pytest.approx(then, abs=0.01)


def test_keys_outside_of_the_partitioners_partition_are_shown(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    for partition in (0, 1):
        produce(brokers, topic, range(30), partition=partition, key=b"everywhere")
    found = penstock.json("topics", "keys", topic)
    assert found["strays"] == ["everywhere"]
    assert found["keys"][0]["partitions"] == [0, 1]
    assert "order is not guaranteed" in penstock("topics", "keys", topic).out
    assert penstock("topics", "keys", topic, "--partitions", "4", ok=False).code == 2
    assert "No records" in penstock("topics", "keys", make_topic(1)).err


def test_tail_shows_the_last_records_or_from_a_time_or_an_offset_on(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    topic, now = make_topic(2), time.time()
    producer = Producer({"bootstrap.servers": brokers})
    for number in range(20):
        headers: list[tuple[str, str | bytes | None]] = [("parity", b"even" if number % 2 == 0 else b"odd")]
        producer.produce(
            topic,
            json.dumps({"n": number}).encode(),
            key=str(number % 3).encode(),
            partition=number % 2,
            timestamp=round((now - 3600 + number * 60) * 1000),
            headers=headers,
        )
    assert producer.flush(WAIT_SECONDS) == 0

    def numbers(*arguments: str) -> list[int]:
        lines = penstock("tail", topic, *arguments, "--json").out.splitlines()
        return [json.loads(line)["value"]["n"] for line in lines]

    assert numbers() == list(range(10, 20))
    assert numbers("--last", "3") == [17, 18, 19]
    assert sorted(numbers("--from-beginning")) == list(range(20))
    assert sorted(numbers("--offset", "8")) == [16, 17, 18, 19]
    assert sorted(numbers("--since", "44m")) == [17, 18, 19]
    assert sorted(numbers("--from-beginning", "--key", "2", "--header", "parity=odd")) == [5, 11, 17]
    assert sorted(numbers("--from-beginning", "--where", 'value["n"] > 17')) == [18, 19]
    assert numbers("--from-beginning", "--partition", "1", "--limit", "2") == [1, 3]
    assert "key" not in penstock("tail", topic, "-n", "1").out
    assert '{"n": 19}' in penstock("tail", topic, "-n", "1").out


def test_lines_typed_in_a_terminal_become_records_until_ctrl_d(brokers: str, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    with terminal("produce", topic, "-b", brokers) as typing:
        typing.wait_for("Each line is a record. Ctrl+D at the start of a line ends the input.")
        assert "\x1b[?25l" not in typing.shown, "no bar is drawn over what is typed"
        typing.press("hello\n\x04")
        typing.wait_for("Wrote 1 record")
        assert typing.end() == 0
    assert read_values(brokers, topic) == [b"hello"]


def test_tail_shows_the_last_records_behind_markers_of_transactions_and_before_an_open_one(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    producer = Producer({"bootstrap.servers": brokers, "transactional.id": topic})
    producer.init_transactions()
    for number in range(3):
        producer.begin_transaction()
        producer.produce(topic, str(number).encode())
        producer.commit_transaction()
    for _ in range(4):
        producer.begin_transaction()
        producer.produce(topic, b"aborted")
        assert producer.flush(120) == 0
        producer.abort_transaction()

    def values(count: int) -> list[str]:
        lines = penstock("tail", topic, "-n", str(count), "--json").out.splitlines()
        return [str(json.loads(line)["value"]) for line in lines]

    assert values(1) == ["2"]
    assert values(2) == ["1", "2"]
    assert values(50) == ["0", "1", "2"]
    producer.begin_transaction()
    producer.produce(topic, b"open")
    assert producer.flush(120) == 0
    assert values(1) == ["2"]
    producer.abort_transaction()
    shown = penstock("topics", "describe", topic).out
    assert "up to 16 records" in shown, "three records, and everything else that has an offset"


def test_tail_follows_until_it_is_interrupted(brokers: str, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(1)
    produce(brokers, topic, ["old"])
    file = tmp_path / "out.jsonl"
    with file.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "penstock", "tail", topic, "--follow", "--json"],
            env={**os.environ, "PENSTOCK_BROKERS": brokers},
            stdout=out,
        )
        wait_for(lambda: "old" in file.read_text(), "the old record")
        produce(brokers, topic, ["new"])
        wait_for(lambda: "new" in file.read_text(), "the new record")
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 0


def test_records_are_produced_from_lines_json_and_templates(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, objects = make_topic(1), make_topic(1)
    file = tmp_path / "in.txt"
    file.write_text("a:1\nb:2\nplain\n")
    penstock("produce", lines, str(file), "--key-separator", ":")
    monkeypatch.setattr("sys.stdin", io.StringIO("from stdin\n"))
    assert penstock.json("produce", lines) == {"written": 1}
    found = [(record.key, record.value) for record in read_records(brokers, lines)]
    assert found == [(b"a", b"1"), (b"b", b"2"), (None, b"plain"), (None, b"from stdin")]

    penstock("produce", objects, "--generate", "3", "--key", "k$n", "--value", '{"n": $n}')
    produce(brokers, objects, [b"\xff\x00", None])
    copied = make_topic(1)
    dump = tmp_path / "dump.jsonl"
    dump.write_text(penstock("tail", objects, "--from-beginning", "--json").out)
    penstock("produce", copied, str(dump), "--json-lines")
    assert read_values(brokers, copied) == read_values(brokers, objects)


def test_a_bad_line_stops_it_and_is_named(penstock: Penstock, make_topic: MakeTopic, tmp_path: Path) -> None:
    topic = make_topic(1)
    file = tmp_path / "bad.jsonl"
    for content, problem in (('{"value": 1}\nnope\n', "line 2 is not JSON"), ("[1]\n", "line 1 is not a record")):
        file.write_text(content)
        refused = penstock("produce", topic, str(file), "--json-lines", ok=False)
        assert refused.code == 2
        assert problem in refused.err
