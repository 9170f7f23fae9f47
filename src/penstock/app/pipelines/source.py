"""What a pipeline reads: topics, and what their records are made of."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from penstock.app.consume_options import is_topic_name
from penstock.app.pipelines.columns import Shape, shape_of
from penstock.app.pipelines.json_schema_columns import json_shape
from penstock.errors import ConfigError
from penstock.serde import Avro, Format, JsonSchema, OrNull, Protobuf

# What each row has besides the fields of its value.
META_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")

# Of values without fields.
VALUE_COLUMN = "value"


@dataclass(frozen=True)
class Source:
    """One or several topics as one DataFrame.

    Args:
        topics: A topic, or a list of topics with the same kind of values.
        value: What the values are. A dataclass, TypedDict or pydantic model, or a schema in Spark's own words
            (``"id string NOT NULL, amount double"``): JSON, with a column for each field. ``dict``: any JSON object,
            as a column ``value`` of Spark's type VARIANT. ``str`` or ``bytes``: a column ``value``. With ``| None``
            tombstones are taken too. ``Avro(schema)``, ``JsonSchema(schema)`` and ``Protobuf(message)``: a column for
            each field of that schema, whichever schemas of the registry the records were written with.
        key: ``bytes``, or ``str`` for a ``_key`` of text.
    """

    topics: Sequence[str]
    value: Any = bytes
    key: type = bytes

    def __post_init__(self) -> None:
        topics = (self.topics,) if isinstance(self.topics, str) else tuple(self.topics)
        object.__setattr__(self, "topics", topics)
        if not topics:
            raise ConfigError("A source names no topic.", hint='Name one: Source("orders").')
        for topic in topics:
            if not is_topic_name(topic):
                raise ConfigError(
                    f"{topic!r} is not a topic name.",
                    hint="Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
                )
        if self.key not in (bytes, str):
            raise ConfigError(f"key={self.key!r} is not a kind of key.", hint="Use bytes or str.")
        self._check_fields()

    @property
    def takes_tombstones(self) -> bool:
        return NoneType in _alternatives(self.value)

    @property
    def kind(self) -> Any:
        """The value's type without ``| None``."""
        kinds = [each for each in _alternatives(self.value) if each is not NoneType]
        return kinds[0] if len(kinds) == 1 else self.value

    @property
    def ddl(self) -> str | None:
        """The schema in Spark's words, where it was given like that: only Spark can read it."""
        return self.kind if isinstance(self.kind, str) else None

    @property
    def shape(self) -> Shape | None:
        """The fields of its values, where they have some."""
        if isinstance(self.kind, JsonSchema):
            return json_shape(str(self.kind.schema))
        if self.ddl is not None or self.format is not None or self.kind in (bytes, str, dict, Any):
            return None
        return shape_of(self.kind)

    @property
    def format(self) -> Format | None:
        """The format with a schema that its values are in, if they are."""
        return self.kind if isinstance(self.kind, Format) else None

    @property
    def packages(self) -> tuple[str, ...]:
        """What Spark needs besides Kafka to read it."""
        return {Avro: ("avro",), Protobuf: ("protobuf",)}.get(type(self.kind), ())

    def _check_fields(self) -> None:
        if self.ddl is not None and not self.ddl.strip():
            raise ConfigError("value is an empty schema.", hint='Write it like "id string NOT NULL, amount double".')
        if self.format is not None:
            _check_columns(self.format)
        if self.shape is not None:
            refuse_meta_columns(self.shape.names)


def refuse_meta_columns(names: Sequence[str]) -> None:
    taken = sorted(set(names) & set(META_COLUMNS))
    if taken:
        raise ConfigError(
            f"The values have a field {taken[0]!r}, which is also what the record's own {taken[0][1:]} is called.",
            hint="Read such values with value=dict or value=str, and take them apart in the pipeline.",
        )


def _check_columns(format_: Format) -> None:
    """Columns are the same for all records, so a schema has to say which, whatever the records were written with."""
    name = type(format_).__name__
    if isinstance(format_, Avro | JsonSchema) and format_.schema is None:
        raise ConfigError(
            f"{name}() does not say which columns a pipeline gets.",
            hint=f"Give it the reader's schema: {name}(schema).",
        )
    if isinstance(format_, Avro):
        schema = json.loads(str(format_.schema))
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ConfigError("Avro: only the fields of a record can be columns.", hint="Use value=bytes for others.")
        refuse_meta_columns([str(each.get("name")) for each in schema.get("fields", ())])
    if isinstance(format_, Protobuf):
        descriptor = format_.message.DESCRIPTOR
        refuse_meta_columns([each.name for each in descriptor.fields])
        circle = _circle(descriptor, ())
        if circle is not None:
            raise ConfigError(
                f"Protobuf: {circle} holds itself, for which Spark has no column.", hint="Read it in a handler."
            )


def _circle(descriptor: Any, inside: tuple[str, ...]) -> str | None:
    """A message that holds itself, at whatever depth."""
    if descriptor.full_name in inside:
        return str(descriptor.full_name)
    inner = (field.message_type for field in descriptor.fields if field.message_type is not None)
    return next(filter(None, (_circle(each, (*inside, descriptor.full_name)) for each in inner)), None)


def as_source(value: Any) -> Source:
    """A text or a list of texts stands for topics of bytes."""
    if isinstance(value, Source):
        return value
    if isinstance(value, Mapping) or not isinstance(value, Sequence):
        raise ConfigError(
            f"{value!r} is not a source.", hint='Use the name of a topic, or Source("orders", value=...).'
        )
    return Source(value)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, OrNull):
        return hint.format, NoneType
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
