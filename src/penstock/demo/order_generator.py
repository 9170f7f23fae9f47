"""Orders for the demo: most are valid, some malformed, rejected or skipped, and one customer is a hot key."""

import json
from collections.abc import Iterator
from random import Random

from penstock.core.reports.record_counts import Counts

_SEED = 20_261_115
_CUSTOMERS = 2_000
_HOT_SHARE = 0.2
_PRODUCTS = ("valve", "gasket", "pipe", "flange", "gauge")

# One of so many orders is of this kind. The numbers are primes, so that kinds rarely coincide.
_MALFORMED_EVERY = 199
_REJECTED_EVERY = 149
_EMPTY_EVERY = 97


def make_orders(count: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Return keys and values, the same on every call."""
    random = Random(_SEED)  # noqa: S311 - repeatable on purpose
    for number in range(count):
        customer = "customer-hot" if random.random() < _HOT_SHARE else f"customer-{random.randrange(_CUSTOMERS)}"
        order = {
            "id": number,
            "customer": customer,
            "product": random.choice(_PRODUCTS),
            "quantity": _quantity(number, random),
            "unit_cents": random.randrange(100, 10_000),
        }
        yield customer.encode(), _malformed(number, order) if number % _MALFORMED_EVERY == 0 else _json(order)


def expected_counts(count: int) -> Counts:
    """Return the counts that a correct run must have."""
    malformed = rejected = empty = 0
    for number in range(count):
        if number % _MALFORMED_EVERY == 0:
            malformed += 1
        elif number % _REJECTED_EVERY == 0:
            rejected += 1
        elif number % _EMPTY_EVERY == 0:
            empty += 1
    dead = malformed + rejected
    return Counts(read=count, written=count - dead - empty, dead_lettered=dead, skipped=empty)


def _quantity(number: int, random: Random) -> int:
    if number % _REJECTED_EVERY == 0:
        return -1
    return 0 if number % _EMPTY_EVERY == 0 else random.randrange(1, 20)


def _malformed(number: int, order: dict[str, object]) -> bytes | None:
    """Return one of four kinds of malformed values that occur in real topics, in turn."""
    kind = number // _MALFORMED_EVERY % 4
    if kind == 0:
        return _json(order)[:-20]
    if kind == 1:
        return _json({**order, "quantity": "many"})
    return b"\xff\xfe\x00 not text" if kind == 2 else None  # noqa: PLR2004


def _json(order: dict[str, object]) -> bytes:
    return json.dumps(order, separators=(",", ":")).encode()
