"""A replay of a range: which handlers can run over a fixed part of their topics, and the options that change for it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from penstock.app.options.consume_options import Start
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, TopicError

if TYPE_CHECKING:
    from penstock.app.handler import Handler

_ID_LETTERS = 8
_BY_NAME = "--handler NAME, or Replay(handler=...)"


@dataclass(frozen=True)
class ReplayRange:
    """What a replay handles of each partition: the records below ``ends``. The engines deliver no later record.

    ``left`` is how many offsets the replay has not handled when it starts. With ``dry_run``, the engines call the
    handler, and write and commit nothing. All outputs go to ``to_topic`` if it is set, whatever an ``Out`` names.
    ``routes`` names those of a route group that are replayed; empty: all. Records of the others are skipped.
    """

    ends: Mapping[TopicPartition, int]
    left: int
    dry_run: bool = False
    to_topic: str | None = None
    routes: tuple[str, ...] = ()


def check_replayable(handler: "Handler", *, to_topic: str | None = None) -> None:
    """Raise an error if a replay of this handler could not keep what its options promise."""

    def wrong(problem: str, hint: str) -> ConfigError:
        return ConfigError(f"Handler {handler.name} cannot be replayed: {problem}", hint=hint)

    if handler.is_shared:
        raise wrong(
            "it consumes as a share group, whose progress is not one offset for each partition.",
            f'Declare the function again without mode="share", and replay that one: {_BY_NAME}.',
        )
    if handler.commit == "manual":
        raise wrong(
            "its records are finished when your code calls record.ack(), perhaps much later, so nothing says when the "
            "range is finished.",
            f'Declare the function again without commit="manual", and replay that one: {_BY_NAME}.',
        )
    if handler.offsets is not None:
        raise wrong(
            "offsets= keeps its progress in a store of yours, which the live handler uses too.",
            f"Declare the function again without offsets=, and replay that one: {_BY_NAME}.",
        )
    if to_topic is not None and not handler.declares_outputs:
        raise wrong(
            "--to-topic or Replay.to_topic names a topic for outputs, and it has none.",
            f"Leave it out, or choose handlers with outputs: {_BY_NAME}.",
        )


def replay_group(handler: "Handler", start: Start, end: Start, names: Sequence[str], to_topic: str | None) -> str:
    """The group of a replay. The same app, range and options always give the same name.

    So a replay that was interrupted finds its commits. ``names`` are the replayed handlers.
    """
    asked = [handler.app, handler.group, sorted(names), _plain(start), _plain(end), to_topic]
    return f"{handler.group}-replay-{sha256(json.dumps(asked).encode()).hexdigest()[:_ID_LETTERS]}"


def replayed(
    handler: "Handler", what: ReplayRange, *, group: str, starts: Mapping[TopicPartition, int], to_topic: str | None
) -> "Handler":
    """The handler as a replay runs it: alone, on the partitions of the range, in a group of its own."""
    changes: dict[str, Any] = {
        "topics": (),
        "pattern": None,
        "partitions": tuple(sorted(what.ends)),
        "group": group,
        "start": dict(starts),
        "from_": None,
        "replay_range": replace(what, to_topic=to_topic),
        # There is no membership of a group, so these have no effect.
        "members": 1,
        "protocol": "classic",
        "assignor": None,
        "static_id": None,
        # The live group reads the retry topics too. So records of a replay wait in memory.
        "retry_topics": (),
    }
    # The only handler has outputs, see check_replayable; a route may have none.
    if to_topic is not None and handler.declares_outputs:
        changes["to"] = to_topic
    if what.dry_run:
        # Without writes and commits, all guarantees are the same.
        changes |= {"delivery": "at-least-once", "commit": "auto"}
    return replace(handler, **changes)


def recreated_error(topic: str) -> TopicError:
    return TopicError(
        f"Topic {topic!r} was recreated during the replay: the records of the range do not exist any more.",
        hint="To replay its new records, delete both groups of the replay with `penstock groups rm`, and start again.",
    )


def _plain(position: Start) -> Any:
    if isinstance(position, datetime):
        return position.timestamp()
    if isinstance(position, Mapping):
        return sorted([*tp, offset] for tp, offset in position.items())
    return position
