"""Acknowledgement by hand: from ``record.ack()`` to the dispatcher."""

from dataclasses import replace
from typing import Any

from penstock.app import RecordAdapter
from penstock.core.records.record import Record
from penstock.engine.dispatch.thread_messages import Acked, Inbox


def acking(adapter: RecordAdapter, inbox: Inbox) -> RecordAdapter:
    """Records of this reading can be acknowledged, which reaches the dispatcher with this inbox."""

    def to_record(source: Any, attempt: int) -> Record:
        record = adapter.to_record(source, attempt)
        acked = Acked((record.topic, record.partition), record.offset, source)
        return record.acknowledged_by(lambda: inbox.put(acked))

    return replace(adapter, to_record=to_record)
