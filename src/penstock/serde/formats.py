"""Formats with a schema, as declarations; ``penstock.codecs`` implements them.

They are plain data, so that they can be pickled for Spark's workers, and that declaring one imports no library.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from penstock.core.settings import Registry, registry_of
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

Subject = Literal["topic", "record", "topic-record"]
IdPlace = Literal["value", "headers"]
SchemaSource = str | PathLike[str] | Mapping[str, Any] | list[Any]
RegistrySource = Registry | str | Mapping[str, Any]


@suggests_options
@dataclass(frozen=True)
class Reference:
    """A schema of the registry that another schema refers to by ``name``."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, kw_only=True)
class Format:
    """The options that all formats share.

    Args:
        registry: A URL, or a mapping of the registry client's settings; by default the app's registry.
        subject: The name of the subject when writing: by the ``"topic"`` (``orders-value``), by the ``"record"``
            (``shop.Order``), or by both, ``"topic-record"`` (``orders-shop.Order``).
        register: Register the schema when writing if the registry does not have it. Otherwise records wait until it is
            registered.
        schema_id: Where a written record has its schema's id: in front of the ``"value"``, or in its ``"headers"``.
            Reading finds both. None means bytes without an id, written with ``schema`` and without a registry.
    """

    gives_objects: ClassVar[bool] = False
    """Whether it decodes to its own objects, which are not converted to the type hint."""

    registry: RegistrySource | None = None
    subject: Subject = "topic"
    register: bool = False
    schema_id: IdPlace | None = "value"

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "registry", registry_of(self.registry))
        if self.subject not in get_args(Subject):
            raise ConfigError(
                f"{name}: subject={self.subject!r} does not exist.",
                hint='Use "topic", "record" or "topic-record".',
            )
        if self.schema_id not in (*get_args(IdPlace), None):
            raise ConfigError(
                f"{name}: schema_id={self.schema_id!r} does not exist.",
                hint='Use "value", "headers", or None for bytes without one.',
            )
        if self.schema_id is None and (self.registry is not None or self.register):
            raise ConfigError(
                f"{name}: a registry has no use with schema_id=None, because there is no id to look up.",
                hint="Leave out registry= and register=, or leave out schema_id=None.",
            )

    def __or__(self, other: None) -> "OrNull":
        return OrNull(self) if other is None else NotImplemented


@dataclass(frozen=True)
class OrNull:
    """``Avro(...) | None``, for a pipeline that accepts tombstones. A handler has ``| None`` in its type hint."""

    format: Format


@suggests_options
@dataclass(frozen=True)
class Avro(Format):
    """Avro, in the wire format of Confluent's serializers.

    Args:
        schema: The reader's and writer's schema: JSON text, a dict, or a path to a file. Records of older and newer
            schemas are resolved to it by Avro's rules (defaults, aliases, promotions). Without it, records are read
            with the schema that they were written with.
        references: The schemas of the registry that ``schema`` refers to.
    """

    schema: SchemaSource | None = None
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _keep_schema(self)


@suggests_options
@dataclass(frozen=True)
class JsonSchema(Format):
    """JSON with a JSON Schema, in the wire format of Confluent's serializers.

    Args:
        schema: The schema that values are checked against: JSON text, a dict, or a path to a file. Without it, each
            value is checked against the schema that it was written with.
        references: The schemas of the registry that ``schema`` refers to.
    """

    schema: SchemaSource | None = None
    references: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _keep_schema(self)


@suggests_options
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
                f"Protobuf({self.message!r}) is not a message class.",
                hint="Pass the class that protoc generated: Protobuf(shop_pb2.Order).",
            )


def _keep_schema(format_: Avro | JsonSchema) -> None:
    """Store the schema as JSON text, whatever form it has, so that formats can be compared and hashed."""
    name, given = type(format_).__name__, format_.schema
    if given is None:
        if format_.schema_id is None:
            raise ConfigError(f"{name}: schema_id=None needs a schema.", hint=f"Write {name}(schema, ...).")
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
            f"{name}: the schema is not JSON: {error}.", hint="Pass JSON text, a dict, or a Path to a file."
        ) from error
    object.__setattr__(format_, "schema", text)
    object.__setattr__(format_, "references", tuple(format_.references))
