"""The Spark schema of a Python type, so that Spark itself reads JSON into columns.

The result is Spark's own JSON notation of a schema, as plain dicts: nothing here needs Spark.
"""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from types import NoneType
from typing import Any, Literal, NoReturn, get_args, get_origin
from uuid import UUID

import msgspec

from penstock.errors import ConfigError

_SCALARS: Mapping[Any, str] = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",  # base64 in JSON, as handlers read it
    datetime: "timestamp",
    date: "date",
    Decimal: "decimal(38,18)",
    UUID: "string",
    Any: "variant",
    object: "variant",
    dict: "variant",
}
_LISTS = (list, set, frozenset, tuple, Sequence, AbstractSet)
_NO_DEFAULT = object()


@dataclass(frozen=True)
class Shape:
    """The Spark schema of a record type, and the defaults, as JSON, of fields that may be missing."""

    schema: dict[str, Any]
    defaults: Mapping[str, str]

    @property
    def names(self) -> list[str]:
        return [each["name"] for each in self.schema["fields"]]


@dataclass(frozen=True)
class _Field:
    name: str  # in JSON
    hint: Any
    required: bool
    default: Any = _NO_DEFAULT


def shape_of(hint: Any) -> Shape:
    fields = _fields(hint)
    if fields is None:
        raise ConfigError(
            f"value={_name(hint)} is not a type with fields for columns.",
            hint="Use a dataclass, a TypedDict, a pydantic model, dict, str, bytes or a schema such as "
            '"id string, amount double".',
        )
    defaults = {
        each.name: msgspec.json.encode(each.default).decode()
        for each in fields
        if each.default is not _NO_DEFAULT and each.default is not None and not _is_optional(each.hint)
    }
    return Shape(_struct(hint, fields, (hint,), top=True), defaults)


def _struct(hint: Any, fields: Sequence[_Field], within: tuple[Any, ...], *, top: bool = False) -> dict[str, Any]:
    return {"type": "struct", "fields": [_column(hint, each, within, top=top) for each in fields]}


def _column(owner: Any, field: _Field, within: tuple[Any, ...], *, top: bool) -> dict[str, Any]:
    has_default = field.default is not _NO_DEFAULT and field.default is not None
    if has_default and not top and not _is_optional(field.hint):
        raise ConfigError(
            f"{_name(owner)}.{field.name} has a default, and only fields of the outermost type may have one.",
            hint="Write `| None = None`, and fill the column in the pipeline.",
        )
    nullable = not field.required or _is_optional(field.hint)
    where = f"{_name(owner)}.{field.name}"
    return {"name": field.name, "type": _type(field.hint, where, within), "nullable": nullable, "metadata": {}}


def _type(hint: Any, where: str, within: tuple[Any, ...]) -> Any:  # noqa: PLR0911 - one for each kind of hint
    hint = _plain(hint)
    if isinstance(hint, typing.Hashable) and hint in _SCALARS:
        return _SCALARS[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [each for each in arguments if each is not NoneType]
        return _type(kinds[0], where, within) if len(kinds) == 1 else _refuse(hint, where, "use Any for a union")
    if origin is Literal:
        return _type_of_values(arguments, hint, where)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _type_of_values([each.value for each in hint], hint, where)
    if hint in _LISTS or origin in _LISTS:
        return _array(hint, origin, arguments, where, within)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _map(arguments, hint, where, within)
    return _record(hint, where, within)


def _record(hint: Any, where: str, within: tuple[Any, ...]) -> dict[str, Any]:
    fields = _fields(hint)
    if fields is None:
        _refuse(hint, where, "use str, and cast it in the pipeline")
    if hint in within:
        _refuse(hint, where, "a type cannot contain itself: use Any there")
    return _struct(hint, fields, (*within, hint))


def _array(hint: Any, origin: Any, arguments: tuple[Any, ...], where: str, within: tuple[Any, ...]) -> dict[str, Any]:
    if origin is tuple and (len(arguments) != len((Any, ...)) or arguments[1] is not ...):
        _refuse(hint, where, "use list[...]")
    element = arguments[0] if arguments else Any
    return {"type": "array", "elementType": _type(element, where, within), "containsNull": _is_optional(element)}


def _map(arguments: tuple[Any, ...], hint: Any, where: str, within: tuple[Any, ...]) -> dict[str, Any]:
    key, value = arguments
    if key is not str:
        _refuse(hint, where, "the keys of a JSON object are text: use dict[str, ...]")
    return {
        "type": "map",
        "keyType": "string",
        "valueType": _type(value, where, within),
        "valueContainsNull": _is_optional(value),
    }


def _type_of_values(values: Sequence[Any], hint: Any, where: str) -> str:
    """The type of an Enum or a Literal. Spark does not check that a value is one of them."""
    kinds = {type(each) for each in values if each is not None}
    if len(kinds) != 1 or not kinds <= {str, int, bool}:
        _refuse(hint, where, "use str")
    return _SCALARS[kinds.pop()]


def _plain(hint: Any) -> Any:
    """The hint without aliases, NewType and Annotated."""
    while True:
        if type(hint).__name__ == "TypeAliasType":  # of Python 3.12
            hint = hint.__value__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif get_origin(hint) is typing.Annotated or get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = get_args(hint)[0]
        else:
            return hint


def _is_optional(hint: Any) -> bool:
    hint = _plain(hint)
    return (
        hint in (Any, object)
        or (get_origin(hint) in (typing.Union, types.UnionType) and NoneType in get_args(hint))
        or (get_origin(hint) is Literal and None in get_args(hint))
    )


def _fields(hint: Any) -> list[_Field] | None:
    if not isinstance(hint, type):
        return None
    for is_kind, read in _KINDS:
        if is_kind(hint):
            return read(hint)
    return None


def _of_dataclass(kind: Any) -> list[_Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [_of_default(each.name, hints[each.name], each) for each in dataclasses.fields(kind) if each.init]


def _of_default(name: str, hint: Any, field: "dataclasses.Field[Any]") -> _Field:
    if field.default_factory is not dataclasses.MISSING:
        return _Field(name, hint, required=False, default=field.default_factory())
    if field.default is not dataclasses.MISSING:
        return _Field(name, hint, required=False, default=field.default)
    return _Field(name, hint, required=True)


def _of_typed_dict(kind: Any) -> list[_Field]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return [_Field(name, hint, required=name in kind.__required_keys__) for name, hint in hints.items()]


def _of_struct(kind: Any) -> list[_Field]:
    return [
        _Field(
            each.encode_name,
            each.type,
            required=each.required,
            default=_NO_DEFAULT
            if each.required
            else each.default
            if each.default is not msgspec.NODEFAULT
            else each.default_factory(),
        )
        for each in msgspec.structs.fields(kind)
    ]


def _of_pydantic(kind: Any) -> list[_Field]:
    fields = []
    for name, each in kind.model_fields.items():
        alias = each.validation_alias if isinstance(each.validation_alias, str) else each.alias
        default = _NO_DEFAULT if each.is_required() else each.get_default(call_default_factory=True)
        fields.append(_Field(alias or name, each.annotation, required=each.is_required(), default=default))
    return fields


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any], list[_Field]]], ...] = (
    (lambda kind: hasattr(kind, "model_fields"), _of_pydantic),
    (dataclasses.is_dataclass, _of_dataclass),
    (typing.is_typeddict, _of_typed_dict),
    (lambda kind: issubclass(kind, msgspec.Struct), _of_struct),
)


def _refuse(hint: Any, where: str, instead: str) -> NoReturn:
    raise ConfigError(
        f"{where} is {_name(hint)}, and Spark has no column type for it.", hint=f"{instead.capitalize()}."
    )


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
