"""Formats with a schema, as declarations: what they are is said here, what they do stands in ``penstock.codecs``.

They are plain data, so that they travel to Spark's workers, and that declaring one needs no library.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from penstock.core.settings import Registry, registry_of
from penstock.errors import ConfigError

Subject = Literal["topic", "record", "topic-record"]
IdPlace = Literal["value", "headers"]
SchemaSource = str | PathLike[str] | Mapping[str, Any] | list[Any]
RegistrySource = Registry | str | Mapping[str, Any]


@dataclass(frozen=True)
class Reference:
    """A schema of the registry that another one refers to, under the name that it uses."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Format:
    """What all formats have.

    Args:
        registry: A URL, or a mapping of settings of the registry's client; the app's by default.
        subject: The subject that a schema is looked up, or registered, under when writing: by the ``"topic"``
            (``orders-value``), by the ``"record"`` (``shop.Order``), or by both (``orders-shop.Order``).
        register: Register the schema when writing, where it is not. Without it, records wait until somebody has.
        schema_id: Where a written record says which schema it is of: in front of the ``"value"``, or in its
            ``"headers"``; both are read. None is for bare bytes, written with ``schema`` and without a registry.
    """

    gives_objects: ClassVar[bool] = False
    """Whether it decodes to objects of its own, which no type hint is to change."""

    registry: RegistrySource | None = None
    subject: Subject = "topic"
    register: bool = False
    schema_id: IdPlace | None = "value"

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "registry", registry_of(self.registry))
        if self.subject not in get_args(Subject):
            raise ConfigError(
                f"{name}: subject={self.subject!r} is not a way to name subjects.",
                hint='Use "topic", "record" or "topic-record".',
            )
        if self.schema_id not in (*get_args(IdPlace), None):
            raise ConfigError(
                f"{name}: schema_id={self.schema_id!r} is not a place for the schema's id.",
                hint='Use "value", "headers", or None for bytes without one.',
            )
        if self.schema_id is None and (self.registry is not None or self.register):
            raise ConfigError(
                f"{name}: with schema_id=None there is no id to look up, so a registry has no use.",
                hint="Leave out registry= and register=, or leave out schema_id=None.",
            )

    def __or__(self, other: None) -> "OrNull":
        return OrNull(self) if other is None else NotImplemented


@dataclass(frozen=True)
class OrNull:
    """``Avro(...) | None``, of a pipeline that takes tombstones too; a handler says so by its hint."""

    format: Format


@dataclass(frozen=True)
class Avro(Format):
    """Avro, in the wire format of Confluent's serializers.

    Args:
        schema: What records are read as and written with: JSON as text, a dict, or a path to a file of it. Records of
            older and newer schemas are resolved to it as Avro says (defaults, aliases, promotions). Without it, they
            are read as they were written.
        references: The schemas of the registry that ``schema`` refers to.
    """

    schema: SchemaSource | None = None
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _keep_schema(self)


@dataclass(frozen=True)
class JsonSchema(Format):
    """JSON with a JSON Schema, in the wire format of Confluent's serializers.

    Args:
        schema: What values are checked against: JSON as text, a dict, or a path to a file of it. Without it, each is
            checked against the schema that it was written with.
        references: The schemas of the registry that ``schema`` refers to.
    """

    schema: SchemaSource | None = None
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _keep_schema(self)


@dataclass(frozen=True)
class Protobuf(Format):
    """Protocol Buffers, in the wire format of Confluent's serializers.

    Args:
        message: The generated class of the message.
    """

    gives_objects: ClassVar[bool] = True

    message: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.message, type) or not hasattr(self.message, "DESCRIPTOR"):
            raise ConfigError(
                f"Protobuf({self.message!r}) names no message.",
                hint="Give it the class that protoc generated: Protobuf(shop_pb2.Order).",
            )


def _keep_schema(format_: Avro | JsonSchema) -> None:
    """The schema as JSON text, whatever it was given as, so that equal formats are equal and can be hashed."""
    name, given = type(format_).__name__, format_.schema
    if given is None:
        if format_.schema_id is None:
            raise ConfigError(f"{name}: with schema_id=None it needs a schema.", hint=f"Write {name}(schema, ...).")
        return
    if isinstance(given, PathLike):
        try:
            given = Path(given).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{name}: the schema {given} cannot be read: {error}.", hint="Check its path.") from error
    try:
        text = given if isinstance(given, str) else json.dumps(given)
        json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"{name}: the schema is not JSON: {error}.", hint="Give it as JSON text, a dict, or a Path to a file."
        ) from error
    object.__setattr__(format_, "schema", text)
    object.__setattr__(format_, "references", tuple(format_.references))
