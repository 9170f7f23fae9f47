"""What benchmarks share: a broker, records to consume, and how results are shown."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.table import Table

from penstock.devkit import Embedded, UpOptions, embedded_brokers
from penstock.kafka import Cluster, make_producer

KEYS = [b"key-%d" % number for number in range(1_000)]
_VALUE = b"x" * 100


@contextmanager
def broker(brokers: str | None) -> Iterator[str]:
    """The one that was named, or the embedded one; where that does not run, it is started, and stopped again."""
    brokers = brokers or embedded_brokers()
    if brokers is not None:
        yield brokers
        return
    kafka = Embedded()
    try:
        yield str(kafka.up(UpOptions(port=0)).bootstrap)
    finally:
        kafka.down()


def fill(
    brokers: str,
    topic: str,
    records: int,
    partitions: int,
    value_of: Callable[[int], bytes] = lambda _: _VALUE,
    *,
    key_of: Callable[[int], bytes] = lambda number: KEYS[number % len(KEYS)],
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Records for a topic, which is created if it is missing: by default of 1,000 keys and 100 bytes."""
    Cluster(brokers).create_topics([topic], partitions=partitions)
    producer = make_producer(brokers, settings={"linger.ms": 50, **settings})
    for number in range(records):
        key, value = key_of(number), value_of(number)
        while True:
            try:
                producer.produce(topic, value=value, key=key, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush(60)


def show(results: Sequence[Mapping[str, Any]], *, title: str, as_json: bool, caption: str | None = None) -> None:
    if as_json:
        print(json.dumps(results, indent=2))
        return
    table = Table("what", "seconds", "records/s", "ratio", title=title, caption=caption)
    for row in results:
        ratio = row["ratio"] if isinstance(row["ratio"], str) else f"{row['ratio']:.2f}"
        table.add_row(row["what"], f"{row['seconds']:.2f}", f"{row['records'] / row['seconds']:,.0f}", ratio)
    Console().print(table)


def show_columns(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, title: str, as_json: bool) -> None:
    """Where a benchmark has other figures than seconds: ``columns`` gives each its heading."""
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table("what", *columns.values(), title=title)
    for row in rows:
        table.add_row(row["what"], *(f"{row[name]:,.1f}" for name in columns))
    Console().print(table)
