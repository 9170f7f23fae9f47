"""The flags of ``tail``, ``dlq show`` and ``produce`` that choose how to decode and encode records."""

import json
import os
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.app import App, load_app, load_module
from penstock.app.config import Names, configured, from_environment, from_file, from_flags
from penstock.codecs import codec_of
from penstock.core.settings import Registry
from penstock.devkit import embedded_registry
from penstock.errors import ConfigError
from penstock.ops.record_view import DecoderFor, Decoding, RecordDecoder, by_app
from penstock.serde import Avro, Format, JsonSchema, Protobuf

ValueAs = Annotated[
    str | None,
    typer.Option(
        "--value-as",
        metavar="FORMAT",
        help="Format of the values: avro, json-schema, json, text or protobuf:MODULE:MESSAGE.",
    ),
]
KeyAs = Annotated[str | None, typer.Option("--key-as", metavar="FORMAT", help="Format of the keys, as --value-as.")]
OfApp = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:APP", help="Decode keys and values as the handlers of this app do."),
]
RegistryUrl = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        help="Schema registry. Default: PENSTOCK_REGISTRY, else penstock.toml, else the embedded registry.",
    ),
]

_VARIABLES = "PENSTOCK_REGISTRY"
_FORMATS: dict[str, Any] = {"avro": Avro(), "json-schema": JsonSchema(), "json": Any, "text": str}
_PROTOBUF = "protobuf:"


def record_decoder_for(
    *, value_as: str | None, key_as: str | None, app: str | None, registry: str | None, config: Path | None
) -> DecoderFor:
    """Decode as an app does, by the given formats, or without either by what the bytes look like."""
    if app is not None:
        if value_as or key_as:
            raise ConfigError(
                "--app cannot be combined with --value-as or --key-as: the app already says how to decode.",
                hint="Leave out --app, or --value-as and --key-as.",
            )
        return by_app(_configured(app, registry, config))
    value, key = (None if each is None else _decoder(each, option) for each, option in _named(value_as, key_as))
    needed = [each for each in (value, key) if isinstance(each, Format)]
    chosen = choose_registry(registry, config) if needed else None
    for each in needed:
        codec_of(each, registry=chosen, field="value")  # raises now, before a record is read, if something is missing
    record_decoder = RecordDecoder(key=key, value=value, registry=chosen)
    return lambda _topic, _group: record_decoder


def decoding(*, app: str | None, registry: str | None, config: Path | None) -> Decoding:
    """Return the formats that the dashboard offers. The app is loaded now, so that a mistake in it is seen at once."""
    loaded = None if app is None else by_app(_configured(app, registry, config))

    @cache
    def make(name: str) -> DecoderFor:
        if name == "app" and loaded is not None:
            return loaded
        value_as = None if name == "auto" else name
        return record_decoder_for(value_as=value_as, key_as=None, app=None, registry=registry, config=config)

    return Decoding((*(["app"] if loaded else []), "auto", *_FORMATS), make)


def choose_registry(given: str | None, config: Path | None) -> Registry | None:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    sources = [
        [each for each in from_file(config, None) if each.owner.kind is None],
        from_environment(variables, Names()),
        from_flags([f"registry={given}"] if given else [], Names()),
    ]
    chosen = configured(App("penstock"), sources).app.registry
    embedded = embedded_registry() if chosen is None else None
    return Registry(url=embedded) if embedded is not None else chosen


def format_of(schema: str, *, subject: str, register: bool) -> Format:
    """Parse ``--schema``: a file with an Avro schema or a JSON Schema, or MODULE:MESSAGE for Protobuf."""
    options: dict[str, Any] = {"subject": subject, "register": register}
    path = Path(schema)
    if not path.is_file():
        if ":" in schema:
            return Protobuf(_message(schema), **options)
        raise ConfigError(
            f"--schema {schema}: this file does not exist.", hint="Name a file, or MODULE:MESSAGE for Protobuf."
        )
    return Avro(path, **options) if _is_avro(path) else JsonSchema(path, **options)


def _is_avro(path: Path) -> bool:
    """Decide by the name of the file, else by its content."""
    if path.suffix == ".avsc":
        return True
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"--schema {path} is not JSON: {error}.", hint="Name a file with an Avro schema or a JSON Schema."
        ) from error
    return not isinstance(content, dict) or content.get("type") in ("record", "enum", "fixed", "map")


def _configured(reference: str, registry: str | None, config: Path | None) -> App:
    app = load_app(reference)
    names = Names.of(app)
    variables = {name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)}
    sources = [
        from_file(config, names),
        from_environment(variables, names),
        from_flags([f"registry={registry}"] if registry else [], names),
    ]
    return configured(app, sources).app


def _named(value_as: str | None, key_as: str | None) -> list[tuple[str | None, str]]:
    return [(value_as, "--value-as"), (key_as, "--key-as")]


def _decoder(name: str, option: str) -> Any:
    if name.startswith(_PROTOBUF):
        return Protobuf(_message(name.removeprefix(_PROTOBUF)))
    if name not in _FORMATS:
        raise ConfigError(
            f"{option} {name!r} is not a known format.", hint=f"Use {', '.join(_FORMATS)} or protobuf:MODULE:MESSAGE."
        )
    return _FORMATS[name]


def _message(reference: str) -> Any:
    module, _, name = reference.partition(":")
    if not name or not all(part.isidentifier() for part in module.split(".")):
        raise ConfigError(
            f"{reference!r} does not name a Protobuf message.", hint="Write MODULE:MESSAGE, such as shop_pb2:Order."
        )
    found: Any = load_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise ConfigError(f"Module {module!r} has no message {name!r}.", hint="Check the spelling of the message.")
    return found
