"""Operators see decoded values, and write with schemas, on a real broker with a real registry."""

import json
from pathlib import Path
from typing import Any

import pytest

from cli_helpers import Penstock
from kafka_helpers import MakeTopic, catch_up, produce, read_records
from penstock import Avro, Registry
from penstock.app import load_app
from penstock.codecs import codec_of
from penstock.devkit import Embedded

SCHEMA = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "since", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    ],
}
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}

# An app whose handler decodes Avro, and refuses one customer.
APP = """
from penstock import App, Avro, Reject

app = App({group!r}, registry={registry!r})


@app.consume({topic!r}, value=Avro(), key=str, dead_letter={dlq!r})
def handle(customer: dict, key: str) -> None:
    raise Reject("no")
"""


def test_records_produced_with_a_schema_are_shown_decoded(
    penstock: Penstock,
    brokers: str,
    kafka: Embedded,
    registry: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, copy, orders, bills = (make_topic() for _ in range(4))
    schema, order, lines = tmp_path / "customer.avsc", tmp_path / "order.json", tmp_path / "customers.jsonl"
    schema.write_text(json.dumps(SCHEMA))
    order.write_text(json.dumps(JSON))
    lines.write_text('{"key": "a", "value": {"id": 7, "since": "2030-01-31"}}\n{"key": "b", "value": null}\n')
    produce_it = ("produce", topic, str(lines), "--json-lines", "--schema", str(schema), "--registry", registry)

    unregistered = penstock(*produce_it, ok=False)
    assert unregistered.code != 0
    assert f"does not have the schema under the subject {topic}-value" in " ".join(unregistered.err.split())
    penstock(*produce_it, "--register")
    penstocks = codec_of(Avro(), registry=Registry(url=registry), field="value")
    first, second = read_records(brokers, topic)
    assert penstocks.decode(first.value or b"", None)["id"] == 7
    assert second.value is None

    monkeypatch.setenv("PENSTOCK_REGISTRY", registry)
    tail = ("tail", topic, "--from-beginning", "--value-as", "avro")
    shown = [json.loads(line) for line in penstock(*tail, "--json").out.splitlines()]
    assert [each["value"] for each in shown] == [{"id": 7, "since": "2030-01-31"}, None]
    assert '{"id": 7, "since": "2030-01-31"}' in penstock(*tail).out
    assert penstock(*tail, "--where", 'value["id"] == 7', "--json").out.count("\n") == 1
    dump = tmp_path / "dump.jsonl"
    dump.write_text(penstock(*tail, "--json").out)
    penstock("produce", copy, str(dump), "--json-lines", "--schema", str(schema), "--register")
    assert [each.value for each in read_records(brokers, copy)] == [first.value, None]

    penstock("produce", orders, "--generate", "2", "--value", '{"id": $n}', "--schema", str(order), "--register")
    penstock(
        "produce",
        bills,
        "--generate",
        "1",
        "--value",
        '{"number": 7}',
        "--schema",
        "protobuf_messages:Bill",
        "--register",
    )
    found = penstock("tail", orders, "--value-as", "json-schema", "--json").out.splitlines()
    assert [json.loads(line)["value"] for line in found] == [{"id": 0}, {"id": 1}]
    monkeypatch.delenv("PENSTOCK_REGISTRY")
    monkeypatch.setenv("PENSTOCK_HOME", str(kafka.home))  # where commands find the embedded registry
    (line,) = penstock("tail", bills, "--value-as", "protobuf:protobuf_messages:Bill", "--json").out.splitlines()
    assert json.loads(line)["value"] == {"number": 7}

    refused = penstock("produce", orders, "--generate", "1", "--value", '{"id": "x"}', "--schema", str(order), ok=False)
    assert refused.code == 2
    assert "'x' is not of type 'integer' - at `$.id`" in " ".join(refused.err.split())


def test_dead_letters_are_shown_as_the_handler_that_failed_decodes_them(
    penstock: Penstock,
    brokers: str,
    registry: str,
    group: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, dlq, module = make_topic(), f"{group}.dlq", f"app_{group[6:]}"
    (tmp_path / f"{module}.py").write_text(APP.format(group=group, registry=registry, topic=source, dlq=dlq))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    codec = codec_of(Avro(SCHEMA, register=True), registry=Registry(url=registry), field="value", topic=source)
    good, _ = codec.encode({"id": 7, "since": None})
    produce(brokers, source, [good, good[:-1]], key=b"k")
    catch_up(load_app(module), brokers)

    letters: list[dict[str, Any]] = penstock.json("dlq", "show", dlq, "--app", module)["letters"]
    assert [each["value"] for each in letters] == [{"id": 7, "since": None}, {"hex": good[:-1].hex()}]
    assert "value_problem" not in letters[0]
    assert letters[1]["value_problem"] == letters[1]["message"]
    assert "at `$.since`" in letters[1]["message"]
    assert '"id": 7' in penstock("dlq", "show", dlq, "--value-as", "avro", "--registry", registry).out
    chosen = penstock.json("dlq", "show", dlq, "--app", module, "--where", 'value["id"] == 7')["letters"]
    assert len(chosen) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--value-as", "avro"), "Avro needs a schema registry, and none is set"),
        (("--value-as", "nothing"), "'nothing' is not a known format"),
        (("--value-as", "protobuf:protobuf_messages"), "does not name a Protobuf message"),
        (("--value-as", "protobuf:protobuf_messages:Nothing"), "has no message 'Nothing'"),
        (("--value-as", "avro", "--registry", "http://127.0.0.1:1"), "cannot be asked"),
        (("--value-as", "avro", "--app", "shop"), "--app cannot be combined with --value-as"),
    ],
)
def test_an_unusable_format_is_one_clear_error(
    penstock: Penstock,
    brokers: str,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    topic = make_topic()
    produce(brokers, topic, [b"\x00\x00\x00\x00\x01x"])
    refused = penstock("tail", topic, *arguments, ok=False)
    assert refused.code != 0
    assert problem in " ".join(refused.err.split())
