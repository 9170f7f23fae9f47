"""Makes the rules of a handler: for a member of the local engine, for a task of Spark, and for the testing kit."""

from collections.abc import Callable

from penstock.app.attempts.failed_records import FailedRecords
from penstock.app.attempts.record_adapter import RecordAdapter
from penstock.app.dispatching.fairness import fairness_of
from penstock.app.dispatching.reporter import Reporter
from penstock.app.handler import Handler
from penstock.core.failures.breaker import Circuit
from penstock.core.scheduling.dispatch import Dispatch
from penstock.core.scheduling.in_flight import InFlight


def dispatch_of(
    handler: Handler,
    adapter: RecordAdapter,
    reporter: Reporter,
    failed_records: FailedRecords,
    *,
    concurrency: int,
    circuit: Circuit | None,
    random: Callable[[], float],
    ahead: bool = False,
) -> Dispatch:
    """``random`` returns numbers from 0 up to 1. ``ahead``: records run only after they are committed."""
    return Dispatch(
        order=handler.order,
        null_keys_in_order=handler.null_keys_in_order,
        concurrency=concurrency,
        batch=handler.batch,
        linger=handler.linger,
        offset_of=adapter.offset_of,
        key_of=adapter.key_of,
        in_flight=InFlight(handler.max_in_flight, handler.max_in_flight_bytes),
        dead_letter_of=failed_records.dead_letter if handler.dead_letter else None,
        retry_record_of=failed_records.retry_record,
        retry_topics=sorted({topic.seconds for topic in handler.delayed.values()}),
        circuit=circuit,
        fairness=fairness_of(handler, adapter, reporter.warned),
        ahead=ahead,
        random=random,
    )
