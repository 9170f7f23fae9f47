"""The parameters of a handler, read from its signature when it is declared, so that mistakes show before it runs."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args, get_origin, get_type_hints

from penstock.app.output_hints import output_types
from penstock.core.records.record import Record
from penstock.errors import ConfigError

Part = Literal["value", "record", "key", "headers", "tx"]

NOT_RESOURCES = frozenset(("value", "values", "record", "records", "key", "keys", "headers", "tx"))
"""Names that a handler's parameters for parts of the record have. No resource may have one."""

_FORMS = (
    "Write it as f(value), f(value, record: Record) or f(record: Record), each as def or async def; parameters named "
    "key and headers get those, and with offsets= one named tx gets the open transaction. Parameters after the first "
    "may also be named like a resource of the app."
)
_BATCH_FORMS = (
    "With batch= write it as f(values: list[...]), f(values: list[...], records: list[Record]) or "
    "f(records: list[Record]), each as def or async def; parameters named keys and headers get those."
)


@dataclass(frozen=True)
class Signature:
    """``parts`` are the parameters in order; ``hints`` their types, except the record's (in a batch, of one record).

    ``names`` are all required parameters in order. Those in ``resources`` have no part: each is named like a resource.
    ``output_types`` and ``has_several_outputs``: see ``output_types`` in ``penstock.app.output_hints``.
    """

    is_async: bool
    parts: tuple[Part, ...]
    hints: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    output_types: tuple[Any, ...] = (Any,)
    has_several_outputs: bool = False

    @property
    def takes_record(self) -> bool:
        return "record" in self.parts

    @property
    def takes_transaction(self) -> bool:
        return "tx" in self.parts


def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that Python runs: the one in a ``functools.partial``, or ``__call__`` of an object."""
    while isinstance(function, partial):
        function = function.func
    is_plain = inspect.isroutine(function) or inspect.isclass(function) or not callable(function)
    return function if is_plain else getattr(function, "__call__")  # noqa: B004, B009 - mypy takes it for no function


def function_name(function: Callable[..., Any]) -> str:
    """The name of a handler: that of its function, or of the class of a callable object."""
    while isinstance(function, partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def read_signature(function: Callable[..., Any], *, batch: bool = False) -> Signature:
    inner = called(function)
    name = getattr(function, "__qualname__", function_name(function) if callable(function) else repr(function))
    forms = _BATCH_FORMS if batch else _FORMS
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"{name} is not a function, so it cannot be a handler.", hint=forms)
    yields = inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner)
    if yields and batch:
        raise ConfigError(
            f"Handler {name} yields, which a handler with batch= cannot.",
            hint="Return a list with the outputs of each record, such as [Out(a), [Out(b), Out(c)], None].",
        )
    hints = _hints(inner, name)
    required = _required(function, name, forms)
    resources = _resources(required, hints, batch=batch)
    parameters = [each for each in required if each.name not in resources]
    parts = tuple(_part(each, hints, batch=batch) for each in parameters)
    if not parts or len(set(parts)) < len(parts) or ("value" in parts and parts[0] != "value"):
        listed = ", ".join(p.name for p in required) or "nothing"
        raise ConfigError(f"Handler {name} takes ({listed}), which cannot be called with a record.", hint=forms)
    by_part: dict[str, Any] = {
        part: hints.get(each.name) for part, each in zip(parts, parameters, strict=True) if part not in ("record", "tx")
    }
    if batch:
        by_part = {part: _element(hint, name) for part, hint in by_part.items()}
    kinds, has_several = output_types(hints.get("return", Any), batch=batch)
    return Signature(
        is_async=inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner),
        parts=parts,
        hints=by_part,
        output_types=kinds,
        has_several_outputs=yields or has_several,
        names=tuple(each.name for each in required),
        resources=resources,
    )


def _resources(required: Sequence[inspect.Parameter], hints: dict[str, Any], *, batch: bool) -> tuple[str, ...]:
    """The parameters that can only be resources: the value is the first parameter, and all other parts have names.

    The app may declare its resources later, so only its start finds out whether they exist.
    """
    return tuple(
        each.name
        for each in required[1:]
        if each.name not in NOT_RESOURCES
        and each.kind is not each.POSITIONAL_ONLY
        and _part(each, hints, batch=batch) == "value"
    )


def _element(hint: Any, name: str) -> Any:
    """The type of one value of a batch, from the type of the list."""
    if hint is list or hint is None:
        return None
    if get_origin(hint) in (list, Sequence) and len(get_args(hint)) == 1:
        return get_args(hint)[0]
    raise ConfigError(f"Handler {name} has batch=, but takes {hint!r} and not a list.", hint=_BATCH_FORMS)


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
        raise ConfigError(f"Handler {name} requires the keyword argument {keyword_only[0]}.", hint=forms)
    return required


def _part(parameter: inspect.Parameter, hints: dict[str, Any], *, batch: bool) -> Part:
    name, hint = parameter.name, hints.get(parameter.name)
    records = (list[Record], Sequence[Record]) if batch else (Record,)
    if hint in records or (name == ("records" if batch else "record") and name not in hints):
        return "record"
    if name == ("keys" if batch else "key"):
        return "key"
    if name == "tx":
        return "tx"
    return "headers" if name == "headers" else "value"
