"""Checks of the options ``workers``, ``scale`` and ``commit``: where a handler runs, and who finishes its records."""

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from penstock.app.options import CommitMode, Scale, WorkerKind
from penstock.errors import ConfigError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

Wrong = Callable[[str, str], ConfigError]


def check_workers(handler: "Handler", wrong: Wrong) -> None:
    if handler.workers not in get_args(WorkerKind):
        raise wrong(
            f"workers={handler.workers!r} is not a kind of worker.",
            'Use "process" for handlers that compute; "auto" runs def on threads and async def on an event loop.',
        )
    _check_scale(handler, wrong)
    if handler.workers == "process" and handler.signature.is_async:
        raise wrong('it is async, which workers="process" cannot run.', "Use def, or leave workers= out.")
    if handler.commit not in get_args(CommitMode):
        raise wrong(f"commit={handler.commit!r} does not exist.", 'Use "auto", "record" or "manual".')
    if handler.commit == "manual" and not handler.signature.takes_record:
        raise wrong(
            'commit="manual" needs record.ack(), but it does not take the record.',
            "Add a parameter: record: Record (or records: list[Record] with batch=).",
        )
    if handler.commit == "manual" and handler.workers == "process":
        raise wrong("record.ack() does not work in a worker process.", 'Use commit="auto".')


def _check_scale(handler: "Handler", wrong: Wrong) -> None:
    if handler.scale not in get_args(Scale):
        raise wrong(f"scale={handler.scale!r} does not exist.", 'Use "partition" or "cpu".')
    if handler.scale == "cpu" and handler.order == "partition":
        raise wrong(
            'scale="cpu" distributes the records of a partition over cores, so it cannot keep their order.',
            'Use order="key" (the default) or order="none".',
        )
