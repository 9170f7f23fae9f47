"""The sources of pipelines: topics, and the type or schema of their records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from penstock.app.options.consume_options import is_topic_name
from penstock.app.pipelines.expectations import UnmetAction, checked_expectations
from penstock.app.pipelines.json_schema_columns import json_shape
from penstock.app.pipelines.spark_schema import Shape, shape_of
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError
from penstock.serde import Avro, Format, JsonSchema, OrNull, Protobuf

# The columns of each row besides the fields of its value.
META_COLUMNS = ("_key", "_topic", "_partition", "_offset", "_timestamp", "_headers")

# The column of values without fields.
VALUE_COLUMN = "value"


@suggests_options
@dataclass(frozen=True)
class Source:
    """One or several topics as one DataFrame.

    Args:
        topics: A topic, or a list of topics with the same type of values.
        value: The type of the values. A dataclass, TypedDict or pydantic model, or a schema in Spark's notation
            (``"id string NOT NULL, amount double"``): JSON, with a column for each field. ``dict``: any JSON object,
            as a column ``value`` of Spark's type VARIANT. ``str`` or ``bytes``: a column ``value``. Add ``| None`` to
            accept tombstones. ``Avro(schema)``, ``JsonSchema(schema)`` and ``Protobuf(message)``: a column for each
            field of that schema, even if the records were written with other schemas of the registry.
        key: ``bytes``, or ``str`` for a ``_key`` column of text.
        expect: Conditions in SQL on the columns, and what happens to a row that does not meet one: ``{"amount > 0":
            "dead_letter", "id IS NOT NULL": "drop", "total >= 0": "fail"}``. The first that is not met decides.
    """

    topics: Sequence[str]
    value: Any = bytes
    key: type = bytes
    expect: Mapping[str, UnmetAction] = field(default_factory=dict)

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
            raise ConfigError(f"key={self.key!r} is not a type for keys.", hint="Use bytes or str.")
        object.__setattr__(self, "expect", checked_expectations(self.expect))
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
        """The schema in Spark's notation, if it was given so. Only Spark can parse it."""
        return self.kind if isinstance(self.kind, str) else None

    @property
    def shape(self) -> Shape | None:
        """The fields of the values, if they have fields."""
        if isinstance(self.kind, JsonSchema):
            return json_shape(str(self.kind.schema))
        if self.ddl is not None or self.format is not None or self.kind in (bytes, str, dict, Any):
            return None
        return shape_of(self.kind)

    @property
    def format(self) -> Format | None:
        """The format of the values, if it is one with a schema."""
        return self.kind if isinstance(self.kind, Format) else None

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that Spark needs to read the source, besides the one for Kafka."""
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
            f"The values have a field {taken[0]!r}, which is also the column of the record's {taken[0][1:]}.",
            hint="Read the values with value=dict or value=str, and extract the fields in the pipeline.",
        )


def _check_columns(format_: Format) -> None:
    """All records have the same columns, so the format needs a schema that decides them."""
    name = type(format_).__name__
    if isinstance(format_, Avro | JsonSchema) and format_.schema is None:
        raise ConfigError(
            f"{name}() has no schema for the columns of the pipeline.",
            hint=f"Pass the reader's schema: {name}(schema).",
        )
    if isinstance(format_, Avro):
        schema = json.loads(str(format_.schema))
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ConfigError(
                "Avro: the schema is not a record, so it has no columns.", hint="Use value=bytes instead."
            )
        refuse_meta_columns([str(each.get("name")) for each in schema.get("fields", ())])
    if isinstance(format_, Protobuf):
        descriptor = format_.message.DESCRIPTOR
        refuse_meta_columns([each.name for each in descriptor.fields])
        circle = _circle(descriptor, ())
        if circle is not None:
            raise ConfigError(
                f"Protobuf: {circle} contains itself, and Spark has no column type for it.",
                hint="Read it in a handler.",
            )


def _circle(descriptor: Any, inside: tuple[str, ...]) -> str | None:
    """The name of a message that contains itself at any depth."""
    if descriptor.full_name in inside:
        return str(descriptor.full_name)
    inner = (field.message_type for field in descriptor.fields if field.message_type is not None)
    return next(filter(None, (_circle(each, (*inside, descriptor.full_name)) for each in inner)), None)


def as_source(value: Any) -> Source:
    """The source that ``sources=`` names; a text or a list of texts names topics with values of bytes."""
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
