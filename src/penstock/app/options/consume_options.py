"""Checks of the options that decide what a handler consumes, where it starts, and how it joins its group."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from penstock.assign import ASSIGNORS, Assignor, assignor_named
from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

Start = Literal["earliest", "latest"] | datetime | Mapping[TopicPartition, int]
"""A position in the log: the first record, the end, the first record at or after a time, or offsets by partition."""

Protocol = Literal["classic", "consumer"]
OnPartitions = Callable[[list[TopicPartition]], Any]
"""A function of the user that gets a list of partitions, each as (topic, partition)."""

Wrong = Callable[[str, str], ConfigError]
"""Makes the error of a handler from a problem and a hint."""

# The assignors that the Kafka client has; with the consumer protocol, those that the broker has.
KNOWN_TO_CLIENT: Mapping[Protocol, tuple[str, ...]] = {
    "classic": ("cooperative-sticky", "range", "roundrobin"),
    "consumer": ("uniform", "range"),
}
# With the consumer protocol the broker decides these, and the client rejects them.
_SETTINGS_OF_CLASSIC = ("session.timeout.ms", "heartbeat.interval.ms", "group.protocol.type")

# Kafka's rule for topic names.
_TOPIC_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MAX_TOPIC_LENGTH = 249
# Syntax that Python's expressions have, and the client's POSIX expressions read differently or reject.
_ONLY_IN_PYTHON = re.compile(r"\\[a-zA-Z0-9]|\(\?|[*+?}][?+]")


def is_topic_name(name: Any) -> bool:
    legal = isinstance(name, str) and 0 < len(name) <= _MAX_TOPIC_LENGTH and _TOPIC_LETTERS.issuperset(name)
    return legal and name not in (".", "..")


def check_sources(topics: Sequence[str], pattern: Any, partitions: Any, wrong: Wrong) -> None:
    """Exactly one of the three may say what the handler consumes."""
    named = [name for name, value in (("topics", topics), ("pattern", pattern), ("partitions", partitions)) if value]
    if not named:
        raise wrong("it consumes no topic.", 'Name at least one: @app.consume("orders").')
    if len(named) > 1:
        raise wrong(f"it has {' and '.join(named)}.", "Use only one of topics, pattern and partitions.")
    if pattern:
        _check_pattern(pattern, wrong)
    for tp in partitions or ():
        if not is_topic_partition(tp):
            raise wrong(f"partitions={partitions!r} does not list partitions.", 'Use [("orders", 0), ("orders", 1)].')


def is_topic_partition(value: Any) -> bool:
    """Whether the value is a pair (topic, partition number from 0)."""
    return isinstance(value, tuple) and [*map(type, value)] == [str, int] and is_topic_name(value[0]) and value[1] >= 0


def is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_pattern(pattern: Any, wrong: Wrong) -> None:
    foreign = _ONLY_IN_PYTHON.search(pattern) if isinstance(pattern, str) else None
    if foreign is not None:
        raise wrong(
            f"pattern={pattern!r} uses {foreign[0]!r}, which Kafka clients read differently from Python.",
            r"Use only . \. [0-9] [^-] ( | ) * + ? {2,3}",
        )
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise wrong(
            f"pattern={pattern!r} is not a regular expression: {error}.", r'Write it like r"orders\..*".'
        ) from error


def matches(pattern: str, topic: str) -> bool:
    """Whether the pattern matches the whole topic name; it never matches an internal topic."""
    return re.fullmatch(pattern, topic) is not None and not topic.startswith("__")


def check_start(option: str, value: Any, wrong: Wrong) -> None:
    if value in ("earliest", "latest"):
        return
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise wrong(
                f"{option}={value!r} has no time zone, so its meaning depends on the machine.",
                "Add one: datetime(2025, 1, 31, tzinfo=UTC).",
            )
        return
    if isinstance(value, Mapping) and value and all(is_topic_partition(k) and is_offset(v) for k, v in value.items()):
        return
    raise wrong(
        f"{option}={value!r} is not a position in a log.",
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
    """``alone``: the handler names its partitions, so it does not join the group."""
    if protocol not in KNOWN_TO_CLIENT:
        raise wrong(f"protocol={protocol!r} is not a group protocol.", 'Use "classic" or "consumer".')
    if assignor is not None and assignor not in KNOWN_TO_CLIENT[protocol]:
        _check_self_managed(assignor, protocol, wrong)
    for option, value in (("static_id", static_id), ("rack", rack)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise wrong(f"{option}={value!r} is not a name.", "Use a text that is not empty.")
    foreign = [name for name in _SETTINGS_OF_CLASSIC if name in settings]
    if protocol == "consumer" and foreign:
        raise wrong(
            f'with protocol="consumer" the broker decides the setting {foreign[0]!r}.',
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
        raise wrong(f"{useless[0]}= has no effect with partitions=: the group assigns nothing.", "Leave one out.")


def one_or_several(value: Any) -> Any:
    """A list of one assignor or topic becomes that one, as a file or a variable always gives a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return value[0] if len(value) == 1 else tuple(value)


def _check_self_managed(assignor: Any, protocol: Any, wrong: Wrong) -> None:
    """Check assignors that the Kafka client does not have, so that Penstock manages the membership itself."""
    if protocol != "classic":
        known = ", ".join(f'"{name}"' for name in KNOWN_TO_CLIENT[protocol])
        raise wrong(f"protocol={protocol!r} has no assignor={assignor!r}.", f"Use one of {known}.")
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
            raise wrong(f"the name of assignor {each!r} is {found.name!r}.", "Use a text: members vote by name.")
        names.append(found.name)
    if len(set(names)) < len(names) or not names:
        raise wrong(f"assignor={assignor!r} is empty, or lists an assignor twice.", "List each assignor once.")


def check_callback(option: str, function: Any, wrong: Wrong) -> None:
    if function is None:
        return
    if not callable(function):
        raise wrong(f"{option}={function!r} is not a function.", "Use a function that takes a list of partitions.")
    if inspect.iscoroutinefunction(function):
        raise wrong(f"{option} is async, and a rebalance cannot await it.", "Write it with def.")
