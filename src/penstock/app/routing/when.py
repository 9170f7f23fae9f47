"""``when=`` of a handler: its checks, and the condition on raw records that it declares."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.records.record import Record
from penstock.core.routing.conditions import HeaderCondition, HeaderValue, KeyLike, as_bytes
from penstock.errors import ConfigError

Otherwise = Literal["dead_letter", "stop", "skip"]

Wrong = Callable[[str, str], ConfigError]

_FORMS = (
    'Use headers such as {"type": "created"} or {"trace": True}, key_like("eu-*"), or a function of the raw record '
    "that returns a bool."
)
_OTHERWISE = ("dead_letter", "stop", "skip")


@dataclass(frozen=True)
class When:
    """A condition on raw records. All of its parts that are not None must hold."""

    headers: tuple[HeaderCondition, ...] = ()
    key: KeyLike | None = None
    function: Callable[[Record], Any] | None = None


def read_when(value: Any, wrong: Wrong) -> When:
    """The condition that ``when=`` declares; ``wrong`` makes the error for a value that declares none."""
    match value:
        case KeyLike():
            return When(key=value)
        case Mapping():
            return When(headers=_header_conditions(value, wrong))
        case _ if callable(value):
            _check_function(value, wrong)
            return When(function=value)
    raise wrong(f"when={value!r} is not a condition.", _FORMS)


def _header_conditions(given: Mapping[Any, Any], wrong: Wrong) -> tuple[HeaderCondition, ...]:
    if not given:
        raise wrong("when={} names no header, so it would take every record.", "Name one, or leave when= out.")
    return tuple(_header_condition(name, value, wrong) for name, value in given.items())


def _header_condition(name: Any, value: Any, wrong: Wrong) -> HeaderCondition:
    if not isinstance(name, str) or not name:
        raise wrong(f"when= names the header {name!r}, which is not a text.", 'Write when={"type": "created"}.')
    if isinstance(value, bool):
        return HeaderCondition(name, present=value)
    values: Iterable[HeaderValue] = [value] if isinstance(value, str | bytes) else value
    if not isinstance(values, list | tuple | set | frozenset) or not values:
        raise _no_value(name, value, wrong)
    if not all(isinstance(each, str | bytes) for each in values):
        raise _no_value(name, value, wrong)
    return HeaderCondition(name, frozenset(map(as_bytes, values)))


def _no_value(name: str, value: Any, wrong: Wrong) -> ConfigError:
    return wrong(
        f"when={{{name!r}: {value!r}}} is no value of a header: headers are text or bytes.",
        f'Use {{{name!r}: "created"}}, a list of such values, or True if the header must be there (False: missing).',
    )


def _check_function(function: Callable[..., Any], wrong: Wrong) -> None:
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        raise wrong("when= is an async function, and the choice of a handler cannot wait.", "Write it with def.")
    if inspect.isclass(function):
        raise wrong(f"when={function.__name__} is a class, not a condition.", _FORMS)
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise wrong(
            f"when= is a function that cannot be called with a record: {error}.",
            "Write it as def matches(record: Record) -> bool.",
        ) from error
    except ValueError:  # a function written in C has no signature
        return


def check_otherwise(otherwise: Any, *, is_conditional: bool, dead_letter: str | None, wrong: Wrong) -> None:
    if otherwise is None:
        return
    if otherwise not in _OTHERWISE:
        raise wrong(f"otherwise={otherwise!r} does not exist.", 'Use "dead_letter", "stop" or "skip".')
    if not is_conditional:
        raise wrong(
            "otherwise= is for records that no handler takes, and it takes every record.",
            "Add when=..., or leave otherwise= out.",
        )
    if otherwise == "dead_letter" and dead_letter is None:
        raise wrong(
            'otherwise="dead_letter" needs a dead-letter topic.', 'Name one with dead_letter=..., or use "stop".'
        )
