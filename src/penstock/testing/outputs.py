"""What an app wrote, as its handlers returned it."""

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
    """From what these handlers say that they return, and how it is encoded.

    The bytes as they are where they do not say, or do not agree.
    """
    declared = [(_returned(handler), handler.to_value, handler.registry) for handler in handlers]
    if not declared or any(each != declared[0] for each in declared):
        return _PLAIN
    hint, how, registry = declared[0]
    if how is not None and not hasattr(how, "decode") and not isinstance(how, Format):
        return _PLAIN
    wanted = None if how is not None and hint is bytes else hint | None  # bytes stands for "it does not say"
    try:
        return reader_by(how, wanted, READING, registry=registry)
    except (ConfigError, TypeError):
        return _PLAIN


def _returned(handler: Handler) -> Any:
    hint = handler.signature.returns
    if handler.batch is not None:
        # A batch returns a list with a result, None or an exception for each record.
        hint = next(iter(get_args(hint)), Any)
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    outputs = tuple(kind for kind in kinds if kind is not NoneType and not _is_error(kind))
    return bytes if Any in outputs or not outputs else reduce(or_, outputs)


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
