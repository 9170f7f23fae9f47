"""Hooks: the user's functions that run at the start and the end of an app, and those that listen to its events."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

from penstock.app.attempts.traceback_text import described
from penstock.app.signature import function_name
from penstock.core.failures.outcome import error_name
from penstock.core.reports.events import Event
from penstock.errors import CallbackError, ConfigError

F = TypeVar("F", bound=Callable[..., Any])
Hook = Callable[[], Any]


@dataclass(frozen=True)
class EventListener:
    """A function that gets the events of these classes. Events of single records only if their class is named."""

    function: Callable[[Event], Any]
    kinds: tuple[type[Event], ...]

    def wants(self, event: Event) -> bool:
        return type(event) in self.kinds if event.per_record else isinstance(event, self.kinds)


@dataclass(frozen=True)
class Hooks:
    """The hooks of one app, in the order of their declaration.

    A pickled app has none: hooks run only in the process that runs the engine.
    """

    on_start: tuple[Hook, ...] = ()
    on_stop: tuple[Hook, ...] = ()
    listeners: tuple[EventListener, ...] = field(default=())

    def __reduce__(self) -> tuple[type["Hooks"], tuple[()]]:
        return (Hooks, ())

    def __bool__(self) -> bool:
        return bool(self.on_start or self.on_stop or self.listeners)

    @property
    def per_record(self) -> bool:
        """Whether a listener wants events of single records."""
        return any(kind.per_record for each in self.listeners for kind in each.kinds)

    def listening(self, function: Callable[[Event], Any] | None) -> "Hooks":
        """Return these hooks and a listener to all events."""
        if function is None:
            return self
        return replace(self, listeners=(*self.listeners, EventListener(function, (Event,))))


class HookMethods:
    """Base of ``App``: the decorators that declare hooks. Each hook is ``def`` or ``async def``.

    All hooks of a run share one thread with one event loop. They run one at a time.
    """

    def __init__(self) -> None:
        self._hooks = Hooks()

    @property
    def hooks(self) -> Hooks:
        return self._hooks

    def on_start(self, function: F) -> F:
        """Call this function before anything is consumed. If it raises, the app does not start."""
        _check(function, "@app.on_start", parameters=0)
        self._hooks = replace(self._hooks, on_start=(*self._hooks.on_start, function))
        return function

    def on_stop(self, function: F) -> F:
        """Call this function when the app has stopped or failed, the last declared first.

        It is not called if a hook of ``on_start`` raised.
        """
        _check(function, "@app.on_stop", parameters=0)
        self._hooks = replace(self._hooks, on_stop=(*self._hooks.on_stop, function))
        return function

    def on_event(self, *kinds: type[Event]) -> Callable[[F], F]:
        """Call this function with each event of these classes of ``penstock.events``.

        It cannot slow the app down: if it is too slow, events are dropped, and an ``EventsDropped`` event says so.
        ``Event`` stands for all events, except those of single records, which you name.
        """
        _check_kinds(kinds)

        def declare(function: F) -> F:
            _check(function, "@app.on_event", parameters=1)
            listener = EventListener(function, kinds)
            self._hooks = replace(self._hooks, listeners=(*self._hooks.listeners, listener))
            return function

        return declare

    def take_hooks_of(self, other: Self) -> None:
        self._hooks = other.hooks


def hook_error(kind: str, function: Callable[..., Any], error: BaseException, *, hint: str) -> CallbackError:
    """Return the error of an app whose hook raised, with the traceback of the hook."""
    message, traceback = described(error)
    problem = f"The {kind} hook {function_name(function)} raised {error_name(type(error))}: {message}"
    made = CallbackError(f"{problem.rstrip('.')}.", hint=hint, traceback=traceback)
    made.__cause__ = error
    return made


def _check_kinds(kinds: tuple[Any, ...]) -> None:
    hint = "Write @app.on_event(Retried, DeadLettered), with classes of penstock.events; Event stands for all."
    if not kinds:
        raise ConfigError("@app.on_event() names no event.", hint=hint)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            raise ConfigError(f"@app.on_event got {kind!r}, which is not a class of events.", hint=hint)


def _check(function: Any, decorator: str, *, parameters: int) -> None:
    if not callable(function):
        raise ConfigError(f"{decorator} got {function!r}, which is not a function.", hint="Put it above a function.")
    takes = "no arguments" if parameters == 0 else "one argument, the event"
    try:
        inspect.signature(function).bind(*[None] * parameters)
    except TypeError as error:
        raise ConfigError(
            f"{decorator} calls {function_name(function)} with {takes}, which it does not accept: {error}.",
            hint=f"Declare it with {takes}.",
        ) from error
    except ValueError:  # a function of C without a signature
        return
