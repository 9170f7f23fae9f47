"""Manual acknowledgement: passes ``record.ack()`` on to the dispatcher."""

from dataclasses import replace
from typing import Any

from penstock.app import RecordAdapter
from penstock.core.records.record import Record
from penstock.engine.dispatch.thread_messages import Acked, Inbox


def with_ack(adapter: RecordAdapter, inbox: Inbox) -> RecordAdapter:
    """Make an adapter whose records put an ``Acked`` message into this inbox when the user calls ``record.ack()``."""

    def to_record(source: Any, attempt: int) -> Record:
        record = adapter.to_record(source, attempt)
        acked = Acked((record.topic, record.partition), record.offset, source)
        return record.acknowledged_by(lambda: inbox.put(acked))

    return replace(adapter, to_record=to_record)
