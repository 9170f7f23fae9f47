"""The options of a handler that say what it fetches, from where on, and as what kind of member of its group."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from penstock.assign import ASSIGNORS, Assignor, assignor_named
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

Start = Literal["earliest", "latest"] | datetime | Mapping[TopicPartition, int]
"""A place in the log: its first record, its end, the first record from a moment on, or offsets by partition."""

Protocol = Literal["classic", "consumer"]
OnPartitions = Callable[[list[TopicPartition]], Any]
"""A user's function that hears about partitions, each as (topic, partition)."""

Wrong = Callable[[str, str], ConfigError]
"""Makes the error of a handler out of a problem and a hint."""

# Those that the Kafka client has itself; with the new protocol they are the broker's.
KNOWN_TO_CLIENT: Mapping[Protocol, tuple[str, ...]] = {
    "classic": ("cooperative-sticky", "range", "roundrobin"),
    "consumer": ("uniform", "range"),
}
# With the new protocol these belong to the broker, and the client refuses them.
_SETTINGS_OF_CLASSIC = ("session.timeout.ms", "heartbeat.interval.ms", "group.protocol.type")

# Kafka's own rule for names of topics.
_TOPIC_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MAX_TOPIC_LENGTH = 249
# What Python reads and the client's POSIX expressions take for something else, or for a mistake.
_ONLY_IN_PYTHON = re.compile(r"\\[a-zA-Z0-9]|\(\?|[*+?}][?+]")


def is_topic_name(name: Any) -> bool:
    legal = isinstance(name, str) and 0 < len(name) <= _MAX_TOPIC_LENGTH and _TOPIC_LETTERS.issuperset(name)
    return legal and name not in (".", "..")


def check_sources(topics: Sequence[str], pattern: Any, partitions: Any, wrong: Wrong) -> None:
    """One of the three says what is consumed."""
    named = [name for name, value in (("topics", topics), ("pattern", pattern), ("partitions", partitions)) if value]
    if not named:
        raise wrong("no topic is named.", 'Name at least one: @app.consume("orders").')
    if len(named) > 1:
        raise wrong(f"{' and '.join(named)} exclude each other.", "Say in one way what it consumes.")
    if pattern:
        _check_pattern(pattern, wrong)
    for place in partitions or ():
        if not is_place(place):
            raise wrong(f"partitions={partitions!r} does not list partitions.", 'Use [("orders", 0), ("orders", 1)].')


def is_place(value: Any) -> bool:
    """Whether this is a partition: (topic, number)."""
    # Partitions are numbered like offsets: from 0 on.
    return isinstance(value, tuple) and [*map(type, value)] == [str, int] and is_topic_name(value[0]) and value[1] >= 0


def is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_pattern(pattern: Any, wrong: Wrong) -> None:
    foreign = _ONLY_IN_PYTHON.search(pattern) if isinstance(pattern, str) else None
    if foreign is not None:
        raise wrong(
            f"pattern={pattern!r} uses {foreign[0]!r}, which Kafka clients do not read as Python does.",
            r"Use . \. [0-9] [^-] ( | ) * + ? {2,3} only.",
        )
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise wrong(
            f"pattern={pattern!r} is not a regular expression: {error}.", r'Write it like r"orders\..*".'
        ) from error


def matches(pattern: str, topic: str) -> bool:
    """Whether the pattern stands for this topic; internal topics are nobody's business."""
    return re.fullmatch(pattern, topic) is not None and not topic.startswith("__")


def check_place_in_log(option: str, value: Any, wrong: Wrong) -> None:
    if value in ("earliest", "latest"):
        return
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise wrong(
                f"{option}={value!r} has no time zone, so it means another moment on each machine.",
                "Add one: datetime(2025, 1, 31, tzinfo=UTC).",
            )
        return
    if isinstance(value, Mapping) and value and all(is_place(k) and is_offset(v) for k, v in value.items()):
        return
    raise wrong(
        f"{option}={value!r} is not a place to start.",
        'Use "earliest", "latest", a datetime with a time zone, or offsets: {("orders", 0): 42}.',
    )


def check_membership(
    *,
    protocol: Any,
    assignor: Any,
    static_id: Any,
    rack: Any,
    members: int,
    alone: bool,
    settings: Mapping[str, Any],
    wrong: Wrong,
) -> None:
    """``alone``: the partitions are named, so there is no group to be a member of."""
    if protocol not in KNOWN_TO_CLIENT:
        raise wrong(f"protocol={protocol!r} is not a group protocol.", 'Use "classic" or "consumer".')
    if assignor is not None and assignor not in KNOWN_TO_CLIENT[protocol]:
        _check_open(assignor, protocol, wrong)
    for option, value in (("static_id", static_id), ("rack", rack)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise wrong(f"{option}={value!r} is not a name.", "Use a word.")
    foreign = [name for name in _SETTINGS_OF_CLASSIC if name in settings]
    if protocol == "consumer" and foreign:
        raise wrong(
            f'with protocol="consumer" the setting {foreign[0]!r} is the broker\'s.',
            "Leave it out, or set it for the group on the broker.",
        )
    chosen = {
        "assignor": assignor is not None,
        "static_id": static_id is not None,
        "members": members > 1,
        "protocol": protocol != "classic",
    }
    useless = [option for option, is_chosen in chosen.items() if is_chosen]
    if alone and useless:
        raise wrong(f"partitions= needs no {useless[0]}=: nothing is assigned by the group.", "Leave one of them out.")


def one_or_several(assignor: str | Assignor | Sequence[str | Assignor] | None) -> Any:
    """A list of one is that one; a file or a variable cannot tell the two apart."""
    if isinstance(assignor, str) or not isinstance(assignor, Sequence):
        return assignor
    return assignor[0] if len(assignor) == 1 else tuple(assignor)


def _check_open(assignor: Any, protocol: Any, wrong: Wrong) -> None:
    """What the client does not have, so that Penstock is the member itself."""
    if protocol != "classic":
        known = ", ".join(f'"{name}"' for name in KNOWN_TO_CLIENT[protocol])
        raise wrong(f"assignor={assignor!r} does not exist with protocol={protocol!r}.", f"Use one of {known}.")
    chosen = assignor if isinstance(assignor, tuple) else (assignor,)
    names = []
    for each in chosen:
        if not isinstance(each, str | Assignor):
            raise wrong(
                f"assignor={each!r} is not an assignor.",
                f"Use one of {', '.join(ASSIGNORS)}, or an object of your own.",
            )
        try:
            found = assignor_named(each) if isinstance(each, str) else each
        except ConfigError as error:
            raise wrong(error.problem, error.hint) from error
        if not isinstance(found.name, str) or not found.name.strip():
            raise wrong(f"the name of assignor {each!r} is {found.name!r}.", "All members know it by its name: a word.")
        names.append(found.name)
    if len(set(names)) < len(names) or not names:
        raise wrong(f"assignor={assignor!r} lists none, or one twice.", "List each of those you would vote for once.")


def check_callback(option: str, function: Any, wrong: Wrong) -> None:
    if function is None:
        return
    if not callable(function):
        raise wrong(f"{option}={function!r} is not a function.", "Give it a function that takes a list of partitions.")
    if inspect.iscoroutinefunction(function):
        raise wrong(f"{option} is async, and nobody could await it in the middle of a rebalance.", "Write it with def.")
