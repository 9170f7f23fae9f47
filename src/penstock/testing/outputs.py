"""What an app wrote, as its handlers returned it."""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from penstock.app import Handler
from penstock.errors import ConfigError
from penstock.serde import Decode, decoder_for


def decoder_of_outputs(handlers: Iterable[Handler]) -> Decode:
    """From what these handlers say that they return; the bytes as they are where they do not say, or do not agree."""
    hints = [_returned(handler) for handler in handlers]
    if not hints or any(hint != hints[0] for hint in hints):
        return decoder_for(bytes | None)
    try:
        return decoder_for(hints[0] | None)
    except (ConfigError, TypeError):
        return decoder_for(bytes | None)


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
