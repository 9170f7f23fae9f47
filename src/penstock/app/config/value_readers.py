"""Readers of option values, from TOML's types or from text, by type hint."""

import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Literal, Union, get_args, get_origin

from penstock.core.text.durations import Duration

# From a TOML value or text to the option's value; raises ``ValueError`` with a text that says what the option takes.
Reader = Callable[[Any], Any]

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_LISTS = (list, tuple, set, frozenset, Sequence, Collection, Iterable, AbstractSet)
# The most general type last: every text is a str.
_RANK = {Literal: 0, bool: 1, int: 2, float: 3, datetime: 4, list: 5, str: 6}


def reader_for(hint: Any) -> Reader | None:
    """The reader of values of this type, or None if no text can express them, as for a function."""
    members = _flat(hint)
    if set(get_args(Duration)) <= set(members):
        return _duration
    readers = [(rank, reader) for rank, reader in map(_single, members) if reader is not None]
    if not readers:
        return None
    in_order = [reader for _, reader in sorted(readers, key=lambda each: each[0])]
    return in_order[0] if len(in_order) == 1 else lambda value: _first(in_order, value)


def _flat(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(inner for each in get_args(hint) for inner in _flat(each))
    return (hint,)


def _single(hint: Any) -> tuple[int, Reader | None]:
    origin = get_origin(hint)
    if origin is Literal:
        return _RANK[Literal], lambda value: _word(get_args(hint), value)
    if origin in _LISTS or hint in _LISTS:
        inner = [each for each in get_args(hint) if each is not ...] or [str]
        return _RANK[list], list_reader(inner, fixed=origin is tuple and ... not in get_args(hint))
    if hasattr(hint, "from_text"):  # an option with parts that also has a form as one text
        return _RANK[Literal], hint.from_text
    reader = _SCALARS.get(hint) if isinstance(hint, type) else None
    return _RANK.get(hint, len(_RANK)), reader


def _first(readers: Iterable[Reader], value: Any) -> Any:
    wanted = []
    for read in readers:
        try:
            return read(value)
        except ValueError as error:
            wanted.append(str(error))
    raise ValueError(" or ".join(wanted))


def list_reader(inner: Sequence[Any], *, fixed: bool = False) -> Reader | None:
    """A reader of lists: any number of values of the first type, or, if ``fixed``, one value of each type in order."""
    readers = [reader for reader in map(reader_for, inner) if reader is not None]
    if len(readers) < len(inner):
        return None

    def read(value: Any) -> Any:
        parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        if not isinstance(parts, list) or (fixed and len(parts) != len(readers)):
            raise ValueError(f"a list of {len(readers)}" if fixed else "a list")
        by_index = readers if fixed else readers[:1] * len(parts)
        return tuple(each(part) for each, part in zip(by_index, parts, strict=True))

    return read


def _word(words: tuple[Any, ...], value: Any) -> Any:
    for word in words:
        if value == word or (isinstance(value, str) and value == str(word)):
            return word
    raise ValueError("one of " + ", ".join(f'"{word}"' for word in words))


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in (*_TRUE, *_FALSE):
        return value.lower() in _TRUE
    raise ValueError("true or false")


def _int(value: Any) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ValueError("a whole number") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")  # noqa: TRY004 - all readers raise the same error
    return value


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a number")  # noqa: TRY004 - as above
    try:
        return float(value)
    except ValueError:
        raise ValueError("a number") from None


def _duration(value: Any) -> Duration:
    """A number of seconds, or text with a unit, which the declaration checks."""
    try:
        return _float(value)
    except ValueError:
        if isinstance(value, str):
            return value
        raise ValueError('a duration such as "250ms", "5s" or "1m"') from None


def _datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError("a date and time such as 2030-01-31T12:00:00+00:00") from None


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("text")


_SCALARS: Mapping[type, Reader] = {bool: _bool, int: _int, float: _float, datetime: _datetime, str: _str}
