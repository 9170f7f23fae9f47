"""Makes the codec of a declared format. Imports the libraries of a format only when an app uses it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from penstock.app import App, Arguments, RecordAdapter, reader_by
from penstock.core.records.record import Record
from penstock.core.settings import Registry, registry_of
from penstock.errors import ConfigError, SetupError
from penstock.serde import Avro, Codec, Field, Format, JsonSchema, Protobuf

_EXTRAS = {Avro: "avro", JsonSchema: "jsonschema", Protobuf: "protobuf"}


# Codecs cache schemas, so all threads of a process share one codec, and so do all tasks of a Spark worker.
@lru_cache(maxsize=256)
def codec_of(format_: Format, *, registry: Registry | None, field: Field, topic: str | None = None) -> Codec:
    """Return the codec of a format, for keys or values. To encode, name the topic that it writes to."""
    own = format_.registry
    chosen = own if isinstance(own, Registry) else registry
    name = type(format_).__name__
    if format_.schema_id is not None and chosen is None:
        raise ConfigError(
            f"{name} needs a schema registry, and none is set.",
            hint='Set one: App(..., registry="http://..."), registry = "..." in penstock.toml, or PENSTOCK_REGISTRY; '
            f"{name}(..., schema_id=None) does without.",
        )
    try:
        make = _maker(format_)
    except ImportError as error:
        extra = _EXTRAS[type(format_)]
        raise SetupError(
            f"{name} needs a library that is not installed: {error.name}.",
            hint=f"Install it: pip install 'penstock[{extra}]'.",
        ) from error
    client: Any = None
    if format_.schema_id is not None and chosen is not None:
        from penstock.codecs.registry_client import registry_client_of  # noqa: PLC0415 - needs the libraries of an extra

        client = registry_client_of(chosen)
    return make(format_, client, field=field, topic=topic)


def _maker(format_: Format) -> Callable[..., Codec]:
    match format_:
        case Avro():
            from penstock.codecs.avro import AvroCodec  # noqa: PLC0415 - an extra

            return AvroCodec
        case JsonSchema():
            from penstock.codecs.json_schema import JsonSchemaCodec  # noqa: PLC0415 - an extra

            return JsonSchemaCodec
        case Protobuf():
            from penstock.codecs.protobuf import ProtobufCodec  # noqa: PLC0415 - an extra

            return ProtobufCodec
        case _:
            raise ConfigError(f"{type(format_).__name__} is not a format.", hint="Use Avro, JsonSchema or Protobuf.")


RECORDS = RecordAdapter(codec_of=codec_of)


def decoder_of(
    how: Any, *, registry: Registry | str | Mapping[str, Any] | None = None, field: Field = "value"
) -> Callable[[Record], Any]:
    """Return a function from a record to its decoded value, or key, for tools that only show records.

    ``how`` is anything that ``value=`` takes. Null is None. A value that cannot be decoded raises Undecodable with the
    reason; a registry that does not answer raises DependencyUnavailable.
    """
    read = reader_by(how, None, RECORDS, field=field, registry=registry_of(registry))
    raw_of = RECORDS.value_of if field == "value" else RECORDS.key_of
    return lambda record: None if raw_of(record) is None else read(record)


def prepare_formats(app: App) -> None:
    """Make all codecs of an app, so that missing libraries and settings show at the start. Makes no requests."""
    for handler in app.declared_handlers:
        with _naming(f"Handler {handler.name}"):
            Arguments(handler, RECORDS)
    for pipeline in app.pipelines:
        with _naming(f"Pipeline {pipeline.name}"):
            for source in pipeline.sources.values():
                if source.format is not None:
                    codec_of(source.format, registry=pipeline.registry, field="value")


def registry_checks(app: App) -> list[tuple[str, Callable[[], str | None]]]:
    """Return a name, and a function that returns what is wrong, for each schema registry that handlers use."""
    used: dict[Registry, Callable[[], str | None]] = {}
    for handler in app.declared_handlers:
        headers = handler.headers.values() if isinstance(handler.headers, Mapping) else [handler.headers]
        for how in (handler.value, handler.key, handler.to_value, *headers):
            if isinstance(how, Format) and how.schema_id is not None:
                registry = how.registry if isinstance(how.registry, Registry) else handler.registry
                if registry is not None and registry not in used:
                    from penstock.codecs.registry_client import registry_client_of  # noqa: PLC0415 - as above

                    used[registry] = registry_client_of(registry).problem
    return [(f"The schema registry at {registry}", problem) for registry, problem in used.items()]


@contextmanager
def _naming(who: str) -> Iterator[None]:
    try:
        yield
    except (ConfigError, SetupError) as error:
        raise type(error)(f"{who}: {error.problem}", hint=error.hint) from error
