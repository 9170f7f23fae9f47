"""Says why a record cannot be read, with the Python decoders of handlers: they name the field and the expected type.

Spark's functions only say that a record cannot be read. Unreadable records are few, so Python is fast enough for them.
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
    """Return a function from a value and its headers to the reason; None where the Python decoders can read it."""
    if source.ddl is not None:
        return lambda _value, _headers: None
    return _why(source.kind, registry)


def reason_column(source: Source, registry: Registry | None) -> Column | None:
    """Return a column with the reason, null where there is none; None if the decoders cannot be pickled."""
    if source.ddl is not None:
        return None
    make_portable(source.kind)
    why = _why(source.kind, registry)
    try:
        cloudpickle.dumps(why)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - pickling a user's class may raise anything; Spark's reason is used then
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
        except Exception:  # noqa: BLE001 - the registry may not answer; a less exact reason is better than waiting
            return None
        return None

    return why
