"""Every producer is idempotent and waits for all replicas, in every part of Penstock and with all settings."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from mock_cluster import client_library
from penstock import Producer
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka import make_producer
from penstock.kafka.client import clients

SOURCES = Path(penstock.__file__).parent
NOWHERE = "127.0.0.1:1"


# A search in the text, because parsing all of these to trees sometimes crashes Python 3.11.
IMPORT = re.compile(
    r"^from confluent_kafka[\w.]* import (?:\([^)]*|[^\n]*)\b(?:Serializing|AIO)?Producer\b", re.MULTILINE
)
CALL = re.compile(r"(?<!class )\b(?:Serializing|AIO)?Producer\(")


def test_producers_are_made_in_one_place() -> None:
    texts = {path.relative_to(SOURCES).as_posix(): path.read_text() for path in SOURCES.rglob("*.py")}
    calls = [name for name, text in texts.items() if IMPORT.search(text) for _ in CALL.findall(text)]
    assert calls == ["kafka/client/clients.py"]


@pytest.mark.parametrize("transactional_id", [None, "mine"])
@pytest.mark.parametrize(("proven", "client"), [(True, "ProvenProducer"), (False, "Producer")])
def test_producers_are_idempotent_with_all_acknowledgements(
    monkeypatch: pytest.MonkeyPatch, transactional_id: str | None, client: str, *, proven: bool
) -> None:
    made: list[dict[str, Any]] = []
    monkeypatch.setattr(clients, client, lambda config, logger: made.append(config))
    make_producer(NOWHERE, settings={"linger.ms": 1}, transactional_id=transactional_id, proven=proven)
    assert (made[0]["enable.idempotence"], made[0]["acks"]) == (True, "all")


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable.idempotence", False),
        ("acks", 1),
        ("acks", "0"),
        ("request.required.acks", 1),
        ("enable.idempotence", True),
    ],
)
def test_a_setting_that_turns_it_off_is_refused_with_the_reason(setting: str, value: object) -> None:
    with pytest.raises(ConfigError, match=r"idempotent: otherwise|in-sync replicas acknowledge"):
        Producer(NOWHERE, settings={setting: value})


@pytest.mark.parametrize("settings", [{"retries": 0}, {"max.in.flight.requests.per.connection": 6}])
def test_settings_that_contradict_idempotence_are_refused_by_the_client(settings: dict[str, Any]) -> None:
    with pytest.raises(PenstockError):
        Producer(NOWHERE, settings=settings)


def test_a_record_that_cannot_be_delivered_is_raised_once_and_named() -> None:
    producer = Producer(NOWHERE, settings={"message.timeout.ms": 200})
    for number in range(3):
        producer.send("orders", number)
    with pytest.raises(PenstockError, match=r"orders.*2 more records"):
        producer.flush()
    seen = producer.send("orders", 4)
    assert isinstance(seen.exception(30), PenstockError)
    producer.flush()
    producer.send("orders", 5)
    with pytest.raises(PenstockError, match="orders"):
        producer.close()
    producer.close()
    with pytest.raises(StateError, match="closed"):
        producer.send("orders", 6)


def test_a_record_that_waits_too_long_has_failed_and_is_never_written_later() -> None:
    producer = Producer(NOWHERE)
    delivery = producer.send("orders", 1)
    with pytest.raises(PenstockError):
        producer.close(timeout=0.1)
    assert delivery.done()


def test_an_error_in_the_block_is_not_hidden_by_those_of_records() -> None:
    def fail() -> None:
        with Producer(NOWHERE, settings={"message.timeout.ms": 200}) as producer:
            producer.send("orders", 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


@pytest.mark.parametrize(
    ("key", "signed"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_the_clients_partitioner_is_that_of_java(key: bytes, signed: int) -> None:
    """The expected hashes are those in the tests of Kafka's own client."""
    library = client_library()
    if library is None:
        pytest.skip("the client library is not a file of its own here")
    murmur2 = ctypes.CDLL(str(library)).rd_kafka_msg_partitioner_murmur2_random
    murmur2.argtypes = [
        ctypes.c_void_p,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_int32,
        ctypes.c_void_p,
        ctypes.c_void_p,
    ]
    for partitions in (3, 4, 7, 12, 100):
        assert murmur2(None, key, len(key), partitions, None, None) == (signed & 0x7FFFFFFF) % partitions


LEFT_OPEN = """
import atexit, logging, sys
atexit.register(print, "the last one")
from penstock import Producer
atexit.register(print, "cleaned up")
producer = Producer({brokers!r}, settings={{"delivery.timeout.ms": 300, "request.timeout.ms": 200, "linger.ms": 0}})
for number in range({count}):
    producer.send("orders", number)
print("sent")
"""


@pytest.mark.parametrize(("count", "reported"), [(20, "20 records were not written"), (1, "1 record was not written")])
def test_records_that_an_unclosed_producer_cannot_write_before_exit_are_reported_with_code_1(
    count: int, reported: str
) -> None:
    script = LEFT_OPEN.format(brokers=NOWHERE, count=count)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 1
    assert reported in ended.stderr
    assert "producer.close()" in ended.stderr
    assert ended.stdout.splitlines()[:2] == ["sent", "cleaned up"]


def test_an_open_producer_that_has_nothing_to_write_is_no_error_at_exit() -> None:
    script = LEFT_OPEN.format(brokers=NOWHERE, count=0)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["sent", "cleaned up", "the last one"]
