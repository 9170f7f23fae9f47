"""The app of these runs: two handlers of the same orders, and what their outputs must be."""

import json
from pathlib import Path
from typing import Any

from penstock.kafka import make_producer

RECORDS = 2_000
KEYS = 100

# It reads no environment variables: the workers of a Spark Connect server do not have those of this process.
APP = """
import asyncio
from dataclasses import dataclass

from penstock import App, Record, Reject, Retry, Skip

app = App("{group}")


@dataclass
class Order:
    id: int
    amount: int


def bill(order: Order, attempt: int) -> dict[str, int]:
    match order.id % 50:
        case 7:
            raise Reject("seven")
        case 8:
            raise Skip("eight")
        case 9 if attempt == 1:
            raise OSError("away")
    return {{"id": order.id, "total": order.amount * 2}}


def consume(name, **options):
    name = f"{group}.{{name}}"
    return app.consume(
        "{source}", group=name, to=f"{{name}}.outputs", dead_letter=f"{{name}}.letters", order="key", concurrency=8,
        retry=Retry(attempts=2, first="1ms"), max_micro_batch=200, **options,
    )


@consume("once", delivery="exactly-once")
def once(order: Order, record: Record) -> dict[str, int]:
    return bill(order, record.attempt)


@consume("least")
async def least(order: Order, record: Record) -> dict[str, int]:
    await asyncio.sleep(0)
    return bill(order, record.attempt)
"""


def write_app(folder: Path, *, group: str, source: str) -> None:
    """Write the module ``shop``."""
    (folder / "shop.py").write_text(APP.format(group=group, source=source))


def fill(brokers: str, source: str, partitions: int) -> None:
    producer = make_producer(brokers, settings={})
    for number in range(RECORDS):
        producer.produce(source, _order(number), key=b"%d" % (number % KEYS), partition=number % KEYS % partitions)
    producer.flush()


def expected() -> dict[str, list[bytes]]:
    """The values in the output and in the dead-letter topic of each handler, sorted."""
    outputs = [_json({"id": number, "total": 2 * number}) for number in range(RECORDS) if number % 50 not in {7, 8}]
    return {"outputs": sorted(outputs), "letters": sorted(_order(number) for number in range(7, RECORDS, 50))}


def _order(number: int) -> bytes:
    return _json({"id": number, "amount": number})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
