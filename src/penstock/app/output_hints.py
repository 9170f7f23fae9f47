"""What the return hint of a handler says about its outputs: their types, and whether there may be several."""

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from penstock.app.out import Out

# Their elements are outputs, whatever they are. A list is one output unless its elements may be Outs.
_ALWAYS_SEVERAL = (Iterator, Iterable, Generator, AsyncIterator, AsyncIterable, AsyncGenerator)
_LISTS = (list, tuple, Sequence)


def output_types(hint: Any, *, batch: bool) -> tuple[tuple[Any, ...], bool]:
    """The types of single outputs, without None and errors, and whether one record may have several.

    ``Any`` is among the types if the hint does not say them.
    """
    if batch and hint is not NoneType:
        # A list with a result, None or an exception for each record.
        hint = next(iter(get_args(hint)), Any)
    kinds: list[Any] = []
    has_several = False
    for each in _members(hint):
        elements = _elements(each)
        has_several = has_several or elements is not None
        kinds += [each] if elements is None else elements
    return tuple(kind for kind in kinds if kind is not NoneType and not _is_error(kind)), has_several


def _elements(hint: Any) -> list[Any] | None:
    """The types of the elements, if they are outputs of their own."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in _ALWAYS_SEVERAL:
        return _members(inner[0]) if inner else [Any]
    if origin in _LISTS:
        found = [member for each in inner if each is not ... for member in _members(each)]
        return found if Out in found else None
    return None


def _members(hint: Any) -> list[Any]:
    return [*get_args(hint)] if get_origin(hint) in (Union, UnionType) else [hint]


def _is_error(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseException)
