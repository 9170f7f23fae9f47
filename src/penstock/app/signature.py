"""What a handler takes: read once from its signature, so that a mistake shows before a record flows."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from penstock.core.record import Record
from penstock.errors import ConfigError
from penstock.serde import decoder_for

_FORMS = "Write it as f(value), f(value, record: Record) or f(record: Record), each as def or async def."
_BATCH_FORMS = (
    "With batch= write it as f(values: list[...]), f(values: list[...], records: list[Record]) or "
    "f(records: list[Record]), each as def or async def."
)


@dataclass(frozen=True)
class Signature:
    """``hint`` is a value's type, or None where the handler takes only records."""

    is_async: bool
    takes_value: bool
    takes_record: bool
    hint: Any
    returns: Any


def read_signature(function: Callable[..., Any], *, batch: bool = False) -> Signature:
    name = getattr(function, "__qualname__", repr(function))
    forms = _BATCH_FORMS if batch else _FORMS
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"{name} is not a function, so it cannot be a handler.", hint=forms)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigError(f"Handler {name} yields; a handler returns its result or None.", hint=forms)
    hints = _hints(function, name)
    parameters = _required(function, name, forms)
    by_record = [p for p in parameters if _is_record(p, hints, batch=batch)]
    values = [p for p in parameters if p not in by_record]
    if not parameters or len(values) > 1 or len(by_record) > 1 or (values and parameters[0] is not values[0]):
        listed = ", ".join(p.name for p in parameters) or "nothing"
        raise ConfigError(f"Handler {name} takes ({listed}), which cannot be called with a record.", hint=forms)
    hint = None
    if values:
        hint = hints.get(values[0].name, list[bytes] if batch else bytes)
        hint = _element(hint, name) if batch else hint
        _check_decodable(hint, name)
    return Signature(
        is_async=inspect.iscoroutinefunction(function),
        takes_value=bool(values),
        takes_record=bool(by_record),
        hint=hint,
        returns=hints.get("return", Any),
    )


def _element(hint: Any, name: str) -> Any:
    """The type of one value, where a batch is a list of them."""
    if hint is list:
        return bytes
    if get_origin(hint) in (list, Sequence) and len(get_args(hint)) == 1:
        return get_args(hint)[0]
    raise ConfigError(f"Handler {name} gets batches, but takes {hint!r}.", hint=_BATCH_FORMS)


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError as error:
        raise ConfigError(
            f"A type hint of handler {name} cannot be resolved: {error}.",
            hint="Import the type at module level, not under TYPE_CHECKING: it decides how records are decoded.",
        ) from error


def _required(function: Callable[..., Any], name: str, forms: str) -> list[inspect.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    keyword_only = [p.name for p in required if p.kind is p.KEYWORD_ONLY]
    if keyword_only:
        raise ConfigError(f"Handler {name} demands the keyword argument {keyword_only[0]}.", hint=forms)
    return required


def _is_record(parameter: inspect.Parameter, hints: dict[str, Any], *, batch: bool) -> bool:
    name, hint = parameter.name, hints.get(parameter.name)
    if batch:
        return hint in (list[Record], Sequence[Record]) or (name == "records" and hint is None)
    return hint is Record or (name == "record" and name not in hints)


def _check_decodable(hint: Any, name: str) -> None:
    try:
        decoder_for(hint)
    except ConfigError as error:
        raise ConfigError(f"Handler {name}: {error.problem}", hint=error.hint) from error
