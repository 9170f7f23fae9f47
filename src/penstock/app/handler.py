"""A handler: the user's function together with the options it was declared with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import NoneType
from typing import Any, Literal, get_args

from penstock.app.signature import Signature, read_signature
from penstock.core.lanes import Order
from penstock.core.retry import Retry
from penstock.core.settings import client_settings, hide_passwords
from penstock.errors import ConfigError

Start = Literal["earliest", "latest"]

# Kafka's own rule for names of topics.
_TOPIC_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MAX_TOPIC_LENGTH = 249

# One to work on and one that may arrive while fetching is being paused.
_MIN_IN_FLIGHT = 2


@dataclass(frozen=True, kw_only=True)
class Handler:
    """Durations are in seconds here; ``App.consume`` documents each option."""

    name: str
    function: Callable[..., Any]
    topics: tuple[str, ...]
    group: str
    to: str | None
    dead_letter: str | None
    retry: Retry
    order: Order
    null_keys_in_order: bool
    concurrency: int
    start: Start
    commit_every: float
    max_in_flight: int
    drain_timeout: float
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", client_settings(self.settings))
        returns = self.signature.returns
        self._check_topics()
        self._check_numbers()
        if self.order not in get_args(Order):
            raise self._wrong(f"order={self.order!r} is not an order.", 'Use "partition", "key" or "none".')
        if self.start not in ("earliest", "latest"):
            raise self._wrong(f"start={self.start!r} is not a place to start.", 'Use "earliest" or "latest".')
        if self.to is None and returns not in (Any, None, NoneType):
            raise self._wrong(
                "it returns a value, which has nowhere to go.",
                "Name an output topic with to=..., or annotate it with -> None.",
            )

    def __repr__(self) -> str:
        # Settings hide their own secrets; a URL among the other options may hold a password too.
        shown = (f"{each.name}={hide_passwords(repr(getattr(self, each.name)))}" for each in fields(self))
        return f"Handler({', '.join(shown)})"

    @cached_property
    def signature(self) -> Signature:
        return read_signature(self.function)

    def _check_topics(self) -> None:
        if not self.topics:
            raise self._wrong("no topic is named.", 'Name at least one: @app.consume("orders").')
        for topic in (*self.topics, self.to, self.dead_letter):
            if topic is None:
                continue
            legal = isinstance(topic, str) and 0 < len(topic) <= _MAX_TOPIC_LENGTH and _TOPIC_LETTERS.issuperset(topic)
            if not legal or topic in (".", ".."):
                raise self._wrong(
                    f"{topic!r} is not a topic name.",
                    "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
                )
        for option, topic in (("to", self.to), ("dead_letter", self.dead_letter)):
            if topic in self.topics:
                raise self._wrong(
                    f"{option}={topic!r} is also its source, so it would feed itself for ever.", "Use another topic."
                )
        if self.to is not None and self.to == self.dead_letter:
            raise self._wrong(f"to and dead_letter are both {self.to!r}.", "Give dead letters a topic of their own.")

    def _check_numbers(self) -> None:
        for option, value in (("concurrency", self.concurrency), ("max_in_flight", self.max_in_flight)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise self._wrong(f"{option}={value!r} is not a count.", "Use a whole number from 1 on.")
        if self.max_in_flight < _MIN_IN_FLIGHT:
            raise self._wrong(f"max_in_flight={self.max_in_flight} is too few to work with.", "Use 2 or more.")

    def _wrong(self, problem: str, hint: str) -> ConfigError:
        return ConfigError(f"Handler {self.name}: {problem}", hint=hint)
