"""What a handler takes: read once from its signature, so that a mistake shows before a record flows."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from penstock.core.record import Record
from penstock.errors import ConfigError
from penstock.serde import decoder_for

_FORMS = "Write it as f(value), f(value, record: Record) or f(record: Record), each as def or async def."


@dataclass(frozen=True)
class Signature:
    """``hint`` is the value's type, or None where the handler takes only the record."""

    is_async: bool
    takes_value: bool
    takes_record: bool
    hint: Any
    returns: Any


def read_signature(function: Callable[..., Any]) -> Signature:
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"{name} is not a function, so it cannot be a handler.", hint=_FORMS)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"Handler {name} yields; a handler returns one value or None.", hint=_FORMS)
    hints = _hints(function, name)
    parameters = _required(function, name)
    by_record = [p for p in parameters if _is_record(p, hints)]
    values = [p for p in parameters if not _is_record(p, hints)]
    if not parameters or len(values) > 1 or len(by_record) > 1 or (values and parameters[0] is not values[0]):
        listed = ", ".join(p.name for p in parameters) or "nothing"
        raise ConfigError(f"Handler {name} takes ({listed}), which cannot be called with a record.", hint=_FORMS)
    hint = hints.get(values[0].name, bytes) if values else None
    if values:
        _check_decodable(hint, name)
    return Signature(
        is_async=inspect.iscoroutinefunction(function),
        takes_value=bool(values),
        takes_record=bool(by_record),
        hint=hint,
        returns=hints.get("return", Any),
    )


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise ConfigError(
            f"A type hint of handler {name} cannot be resolved: {error}.",
            hint="Import the type at module level, not under TYPE_CHECKING: it decides how records are decoded.",
        ) from error


def _required(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    keyword_only = [p.name for p in required if p.kind is p.KEYWORD_ONLY]
    if keyword_only:
        raise ConfigError(f"Handler {name} demands the keyword argument {keyword_only[0]}.", hint=_FORMS)
    return required


def _is_record(parameter: inspect.Parameter, hints: dict[str, Any]) -> bool:
    return hints.get(parameter.name) is Record or (parameter.name == "record" and parameter.name not in hints)


def _check_decodable(hint: Any, name: str) -> None:
    try:
        decoder_for(hint)
    except ConfigError as error:
        raise ConfigError(f"Handler {name}: {error.problem}", hint=error.hint) from error
