"""Makes what a run reports fit into one Kafka record: brokers refuse larger ones, and then nothing would be seen."""

from collections.abc import Callable, Mapping
from typing import Any

# How many entries of each list and characters of each text are kept: everything, then less and less.
_STEPS = ((1_000, 6_000), (200, 2_000), (60, 500), (20, 200), (8, 100))
# Of these lists the last entries are the newest ones; of others, the first entries matter most.
_OLDEST_FIRST = frozenset({"points", "found", "batches", "hot_keys", "stuck"})
# Names are part of addresses, and the counts of a histogram belong to its bounds.
_WHOLE = frozenset(
    {"group", "groups", "name", "handler", "handlers", "members", "works", "topic", "topics"}
    | {"latency", "latency_bounds"}
)
# These are not records with fields: they have an entry for each partition or expectation.
_MAPS = frozenset({"partitions", "failed_rows"})


def fitted(content: Mapping[str, Any], *, limit: int, size: Callable[[Any], int]) -> dict[str, Any] | None:
    """Return the content with as much detail as fits into ``limit`` bytes; None if even the least does not.

    If something was left out, it has ``"shortened": True``. ``size`` returns the bytes of a value.
    """
    if size(content) <= limit:
        return dict(content)
    for items, characters in _STEPS:
        found = {**_cut(content, items, characters), "shortened": True}
        if size(found) <= limit:
            return found
    return None


def _cut(value: Any, items: int, characters: int, name: str = "") -> Any:
    whole = name in _WHOLE
    if isinstance(value, Mapping):
        entries = list(value.items())[:items] if name in _MAPS else value.items()
        return {key: _cut(each, items, characters, key) for key, each in entries}
    if isinstance(value, list | tuple):
        kept = value if whole else value[-items:] if name in _OLDEST_FIRST else value[:items]
        return [_cut(each, items, characters, name if isinstance(each, str) else "") for each in kept]
    if isinstance(value, str) and not whole and len(value) > characters:
        return f"{value[:characters]}…"
    return value
