"""Acknowledgement by hand: from ``record.ack()`` to the dispatcher."""

from dataclasses import replace
from typing import Any

from penstock.app import Reading
from penstock.core.records.record import Record
from penstock.engine.dispatch.thread_messages import Acked, Inbox


def acking(reading: Reading, inbox: Inbox) -> Reading:
    """Records of this reading can be acknowledged, which reaches the dispatcher with this inbox."""

    def to_record(source: Any, attempt: int) -> Record:
        record = reading.to_record(source, attempt)
        acked = Acked((record.topic, record.partition), record.offset, source)
        return record.acknowledged_by(lambda: inbox.put(acked))

    return replace(reading, to_record=to_record)
