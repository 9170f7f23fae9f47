"""Why a record cannot be read, as the decoders of handlers say it: with its place, and what was expected there.

Spark's functions only say that it cannot. Records that cannot be read are few, so for them Python may run.
"""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from penstock.app import reader_by
from penstock.app.pipelines import Source
from penstock.codecs import RECORDS
from penstock.core.failures.dead_letter_headers import MAX_MESSAGE_BYTES, bounded
from penstock.core.failures.outcome import Undecodable
from penstock.core.records.record import Record
from penstock.core.settings import Registry
from penstock.serde import make_portable

Why = Callable[[Any, Any], str | None]


def reason_of(source: Source, registry: Registry | None) -> Why:
    """Says why a raw value with its headers cannot be read; None where Python's decoders have no reason."""
    if source.ddl is not None:
        return lambda _value, _headers: None
    return _why(source.kind, registry)


def reason_column(source: Source, registry: Registry | None) -> Column | None:
    """The reason of a raw row, null where these decoders have none; None where they cannot travel to the workers."""
    if source.ddl is not None:
        return None
    make_portable(source.kind)
    why = _why(source.kind, registry)
    try:
        cloudpickle.dumps(why)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whatever a class of the user's holds; there is a reason without it
        return None
    return F.udf(why, "string")(F.col("value"), F.col("headers"))


def _why(how: Any, registry: Registry | None) -> Why:
    def why(value: bytes | None, headers: Sequence[Any] | None) -> str | None:
        if value is None:
            return None
        pairs = tuple((name, None if text is None else bytes(text)) for name, text in headers or ())
        try:
            reader_by(how, None, RECORDS, registry=registry)(Record("", 0, 0, None, bytes(value), pairs))
        except Undecodable as error:
            return bounded(str(error), MAX_MESSAGE_BYTES)
        except Exception:  # noqa: BLE001 - a registry that is away: the reason may be less exact, the record must not wait
            return None
        return None

    return why
