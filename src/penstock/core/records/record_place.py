"""The place of one record, as people write it: ``orders:3@42``."""

import re

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

# The second form is the one of events, errors and `penstock tail`.
_FORMS = re.compile(r"(?P<topic>[^:@\[\]\s]+)(?::(?P<a>\d+)|\[(?P<b>\d+)\])@(?P<offset>\d+)")


def read_place(text: str, *, name: str) -> tuple[TopicPartition, int]:
    """Return the partition and the offset of ``orders:3@42`` or ``orders[3]@42``; ``name`` is the flag."""
    found = _FORMS.fullmatch(text.strip())
    if found is None:
        raise ConfigError(
            f"{name} {text!r} does not name a record.", hint="Write TOPIC:PARTITION@OFFSET, such as orders:3@42."
        )
    return (found["topic"], int(found["a"] or found["b"])), int(found["offset"])
