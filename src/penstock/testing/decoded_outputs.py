"""Decodes the outputs of an app to the values that its handlers returned."""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import attrgetter, or_
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from penstock.app import Handler, reader_by
from penstock.core.records.record import Record
from penstock.errors import ConfigError
from penstock.serde import Format
from penstock.testing.memory_broker import READING

_PLAIN = attrgetter("value")


def reader_of_outputs(handlers: Iterable[Handler]) -> Callable[[Record], Any]:
    """Choose a decoder by the return hints of these handlers and how they encode outputs.

    Without hints, or if the handlers differ, outputs stay bytes.
    """
    declared = [(_returned(handler), handler.to_value, handler.registry) for handler in handlers]
    if not declared or any(each != declared[0] for each in declared):
        return _PLAIN
    hint, how, registry = declared[0]
    if how is not None and not hasattr(how, "decode") and not isinstance(how, Format):
        return _PLAIN
    wanted = None if how is not None and hint is bytes else hint | None  # bytes means that there is no hint
    try:
        return reader_by(how, wanted, READING, registry=registry)
    except (ConfigError, TypeError):
        return _PLAIN


def _returned(handler: Handler) -> Any:
    hint = handler.signature.returns
    if handler.batch is not None:
        # A batch handler returns a list with a result, None or an exception for each record.
        hint = next(iter(get_args(hint)), Any)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    outputs = tuple(kind for kind in kinds if kind is not NoneType and not _is_error(kind))
    return bytes if Any in outputs or not outputs else reduce(or_, outputs)


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
