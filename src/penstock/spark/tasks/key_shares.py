"""Divides the records of a slice over several tasks, by key (``scale="cpu"``)."""

import zlib
from collections.abc import Sequence

from penstock.app import Handler
from penstock.core.progress.slices import Slice
from penstock.core.scheduling.lanes import AnyRecord
from penstock.kafka import MESSAGES


def own_share(handler: Handler, each: Slice, batch: Sequence[AnyRecord]) -> Sequence[AnyRecord]:
    """Return the records that the task of this slice handles."""
    if each.shares == 1:
        return batch
    return [message for message in batch if _share(handler, message, each.shares) == each.share]


def _share(handler: Handler, message: AnyRecord, shares: int) -> int:
    key = MESSAGES.key_of(message)
    if handler.order == "none" or (key is None and not handler.null_keys_in_order):
        return MESSAGES.offset_of(message) % shares
    return zlib.crc32(key or b"") % shares
