"""Dead letters on a real broker: listed, shown, and each replayed once."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cli_helpers import Penstock
from kafka_helpers import WAIT_SECONDS, MakeTopic, catch_up, read_records, read_values, wait_for
from penstock import App, Record, Reject
from penstock.core.failures.dead_letter_headers import ReplayHeader
from penstock.kafka import Cluster

Headers = list[tuple[str, str | bytes | None]]


def _spring(source: str) -> Headers:
    return [
        ("kafka_dlt-original-topic", source.encode()),
        ("kafka_dlt-original-partition", struct.pack(">i", 0)),
        ("kafka_dlt-original-offset", struct.pack(">q", 11)),
        ("kafka_dlt-original-consumer-group", b"spring-group"),
        ("kafka_dlt-exception-cause-fqcn", b"com.example.BadOrder"),
        ("kafka_dlt-exception-message", b"no such item"),
    ]


def _karafka(source: str) -> Headers:
    return [("source_topic", source.encode()), ("source_partition", b"0"), ("source_offset", b"12")]


def _share(source: str) -> Headers:
    return [
        ("__dlq.errors.topic", source.encode()),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"13"),
        ("__dlq.errors.group", b"share-group"),
        ("__dlq.errors.message", b"rejected"),
    ]


def write(brokers: str, topic: str, letters: list[tuple[str, Headers]]) -> None:
    producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random"})
    for value, headers in letters:
        producer.produce(topic, value.encode(), key=value.encode(), headers=headers)
    assert producer.flush(WAIT_SECONDS) == 0


def test_letters_of_all_four_styles_are_listed_shown_and_replayed(
    penstock: Penstock, brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(1), f"{make_topic(1)}.dlq"
    write(brokers, source, [("ours", [("trace", b"t-1")])])
    app = App(group, brokers=brokers)

    @app.consume(source, dead_letter=dlq)
    def refuse(value: str) -> None:
        raise Reject("not today")

    catch_up(app, brokers)
    write(
        brokers,
        dlq,
        [("spring", _spring(source)), ("karafka", _karafka(source)), ("share", _share(source)), ("foreign", [])],
    )
    assert {"topic": dlq, "max_letters": 5} in penstock.json("dlq", "ls")["topics"]
    everywhere = {each["topic"]: each["piles"] for each in penstock.json("dlq", "ls", "--by", "source")["topics"]}
    assert {each["source"]: each["count"] for each in everywhere[dlq]} == {source: 4, "": 1}
    assert "TOPIC" in penstock("dlq", "ls", "--source", source).out.split()
    assert "Is " + source in penstock("dlq", "show", source).err, "a topic of other records"
    assert "Is " + source in penstock("dlq", "ls", source).err
    reasons: Counter[str] = Counter()
    for each in penstock.json("dlq", "ls", dlq)["piles"]:
        reasons[each["reason"]] += each["count"]
    assert reasons == {"Reject": 1, "BadOrder": 1, "rejected": 1, "unknown": 2}

    shown = {each["value"]: each for each in penstock.json("dlq", "show", dlq)["letters"]}
    styles = {value: each["style"] for value, each in shown.items()}
    assert styles == {"ours": "penstock", "spring": "spring", "karafka": "karafka", "share": "share", "foreign": ""}
    assert shown["spring"]["source"] == {"topic": source, "partition": 0, "offset": 11, "timestamp_ms": None}
    assert "not today" in penstock("dlq", "show", dlq, "--reason", "today").out
    assert "in refuse\n" in shown["ours"]["traceback"]
    assert 'raise Reject("not today")' in penstock("dlq", "show", dlq, "--reason", "today").out

    plan = penstock.json("dlq", "replay", dlq)
    assert (sum(each["letters"] for each in plan["going"]), plan["no_known_source"]) == (4, 1)
    assert len(read_values(brokers, source)) == 1
    penstock("dlq", "replay", dlq, "--execute", "--yes")
    replayed = read_records(brokers, source)[1:]
    assert Counter(record.value for record in replayed) == Counter([b"ours", b"spring", b"karafka", b"share"])
    assert all(set(_names(record)) <= {"trace", *ReplayHeader} for record in replayed)
    assert ("trace", b"t-1") in next(record for record in replayed if record.value == b"ours").headers

    again = penstock.json("dlq", "replay", dlq, "--execute", "--yes")
    assert (again["going"], again["sent"], again["replayed_before"]) == ([], 0, 4)
    assert len(read_values(brokers, source)) == 5
    assert penstock.json("dlq", "replay", dlq, "--again", "--execute", "--yes")["sent"] == 4


def test_a_replay_of_some_leaves_the_others_for_later_and_never_sends_one_twice(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(2), make_topic(2)
    write(brokers, dlq, [(f'{{"n": {number}}}', _karafka(source)) for number in range(30)])
    assert penstock.json("dlq", "replay", dlq, "--where", 'value["n"] % 3 == 0', "--execute", "-y")["sent"] == 10
    assert penstock.json("dlq", "replay", dlq, "--where", 'value["n"] < 10', "--execute", "-y")["sent"] == 6
    assert penstock.json("dlq", "replay", dlq, "--key", '{"n": 29}', "--execute", "-y")["sent"] == 1
    last = penstock.json("dlq", "replay", dlq, "--execute", "-y")
    assert (last["sent"], last["replayed_before"]) == (13, 17)
    numbers = sorted(json.loads(value or b"")["n"] for value in read_values(brokers, source))
    assert numbers == list(range(30))


def test_a_killed_replay_continues_where_it_stopped_and_sends_each_once(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(2), make_topic(2)
    count = 400
    write(brokers, dlq, [(str(number), _karafka(source)) for number in range(count)])
    command = [sys.executable, "-m", "penstock", "dlq", "replay", dlq, "--execute", "--yes", "--rate", "40"]
    for least in (1, 60, 120):
        process = subprocess.Popen(command, env={**os.environ, "PENSTOCK_BROKERS": brokers})
        wait_for(lambda: len(read_values(brokers, source)) >= least, "some letters")  # noqa: B023 - called at once
        process.send_signal(signal.SIGKILL)
        process.wait(WAIT_SECONDS)
    process = subprocess.Popen(command, env={**os.environ, "PENSTOCK_BROKERS": brokers}, stdout=subprocess.DEVNULL)
    before = len(read_values(brokers, source))
    wait_for(lambda: len(read_values(brokers, source)) > before, "some more")
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_SECONDS) == 1
    rest = penstock.json("dlq", "replay", dlq, "--execute", "--yes")
    assert 0 < rest["sent"] == count - rest["replayed_before"]
    assert sorted(int(value or b"") for value in read_values(brokers, source)) == list(range(count))


def test_a_second_replay_takes_over_and_the_first_stops(
    penstock: Penstock, brokers: str, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(1), make_topic(1)
    write(brokers, dlq, [(str(number), _karafka(source)) for number in range(200)])
    command = [sys.executable, "-m", "penstock", "dlq", "replay", dlq, "--execute", "--yes", "--rate", "20"]
    with subprocess.Popen(
        command,
        env={**os.environ, "PENSTOCK_BROKERS": brokers},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        wait_for(lambda: read_values(brokers, source), "the first letters")
        assert penstock.json("dlq", "replay", dlq, "--execute", "--yes")["sent"] > 0
        _, said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert "has started and fenced this one" in said
    assert sorted(int(value or b"") for value in read_values(brokers, source)) == list(range(200))


def test_a_record_that_came_back_too_often_is_parked(
    penstock: Penstock, brokers: str, group: str, make_topic: MakeTopic, cluster: Cluster
) -> None:
    source, dlq = make_topic(1), f"{make_topic(1)}.dlq"
    write(brokers, source, [("poison", [])])
    app = App(group, brokers=brokers)

    @app.consume(source, dead_letter=dlq)
    def refuse(value: str) -> None:
        raise Reject("never")

    for _ in range(2):
        catch_up(app, brokers)
        assert penstock.json("dlq", "replay", dlq, "--max-returns", "2", "--execute", "-y")["sent"] == 1
    catch_up(app, brokers)
    reported = penstock("dlq", "replay", dlq, "--max-returns", "2", "--execute", "-y").out
    assert f"Parked 1 of 1 dead letter in {dlq}.parked." in reported
    assert "Replayed" not in reported, "it did not go back"
    plan = penstock.json("dlq", "replay", dlq, "--max-returns", "2", "--again")
    assert (len(plan["going"]), plan["parked"], plan["sent"]) == (1, 1, 0)
    assert len(read_values(brokers, source)) == 3
    (parked,) = read_records(brokers, f"{dlq}.parked")
    assert dict(parked.headers)["penstock-dlq-error-message"] == b"never"


def test_one_dead_letter_can_be_edited(
    penstock: Penstock, brokers: str, make_topic: MakeTopic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, dlq = make_topic(1), make_topic(1)
    write(brokers, dlq, [('{"amount": "5"}', _karafka(source)), ("other", _karafka(source))])
    script = tmp_path / "editor.py"
    script.write_text("import sys; p = sys.argv[1]; t = open(p).read(); open(p, 'w').write(t.replace('\"5\"', '5'))")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    monkeypatch.delenv("VISUAL", raising=False)
    penstock("dlq", "replay", dlq, "--at", "0:0", "--edit", "--execute", "-y")
    assert read_values(brokers, source) == [b'{"amount": 5}']
    unchanged = penstock("dlq", "replay", dlq, "--at", "0:1", "--edit", "--execute", "-y", ok=False)
    assert unchanged.code == 2
    assert read_values(brokers, source) == [b'{"amount": 5}']


def test_a_replay_is_recorded_in_the_audit_file(
    penstock: Penstock, brokers: str, cluster: Cluster, make_topic: MakeTopic
) -> None:
    source, dlq = make_topic(1), make_topic(1)
    write(brokers, dlq, [("a", _spring(source))])
    penstock("dlq", "replay", dlq, "--execute", "-y")
    file = Path(os.environ["PENSTOCK_HOME"], "audit", f"{cluster.id()}.jsonl")
    sending, sent = (json.loads(line) for line in file.read_text().splitlines()[-2:])
    assert sending["records"] == [{"from": f"{dlq}[0]@0", "to": source, "reason": "BadOrder"}]
    assert (sending["event"], sent["event"], sending["batch"]) == ("sending", "sent", sent["batch"])
    assert f"replay {dlq}" in sent["command"]


def test_letters_are_chosen_by_time(penstock: Penstock, brokers: str, make_topic: MakeTopic) -> None:
    dlq, now = make_topic(1), time.time()
    producer = Producer({"bootstrap.servers": brokers})
    for hours in (30, 20, 10, 1):
        producer.produce(dlq, str(hours).encode(), timestamp=round((now - hours * 3600) * 1000))
    assert producer.flush(WAIT_SECONDS) == 0
    shown = penstock.json("dlq", "show", dlq, "--since", "25h", "--until", "5h")["letters"]
    assert [each["value"] for each in shown] == ["20", "10"]
    assert len(penstock.json("dlq", "ls", dlq, "--by", "hour")["piles"]) == 4


def _names(record: Record) -> list[str]:
    return [name for name, _ in record.headers]
