"""Decodes keys and values of records for an operator: as requested, else by what the bytes look like."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.app import App, Handler, RouteGroup, reader_by
from penstock.app.routing.route_choice import choice
from penstock.codecs import RECORDS
from penstock.codecs.json_text import to_json
from penstock.core.failures.outcome import DependencyUnavailable, Reject, Skip, Undecodable
from penstock.core.records.record import Record
from penstock.core.settings import Registry
from penstock.core.text.foreign_text import printable_line
from penstock.core.text.readable_bytes import as_plain, as_text, readable
from penstock.errors import ConfigError, ServerError
from penstock.serde import Field

Read = Callable[[Record], Any]


@dataclass(frozen=True)
class RecordView:
    """A key and a value as JSON. If one cannot be decoded, it is shown undecoded, with the reason as its problem."""

    key: Any
    value: Any
    key_problem: str | None = None
    value_problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        problems = {"key_problem": self.key_problem, "value_problem": self.value_problem}
        return {
            "key": self.key,
            "value": self.value,
            **{name: problem for name, problem in problems.items() if problem is not None},
        }

    def key_text(self, record: Record) -> str:
        return _line(self.key, record.key, self.key_problem)

    def value_text(self, record: Record) -> str:
        return _line(self.value, record.value, self.value_problem)


def _line(value: Any, raw: bytes | None, problem: str | None) -> str:
    """Return text of undecoded bytes, or a decoded value as one line of JSON."""
    if problem is not None:
        return f"{as_text(raw)} (cannot be decoded: {printable_line(problem)})"
    if raw is None or as_plain(readable(raw)) == value:
        return as_text(raw)
    return printable_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


class RecordDecoder:
    """``key`` and ``value`` are decoders as handlers declare them, or None for undecoded bytes."""

    def __init__(self, *, key: Any = None, value: Any = None, registry: Registry | None = None) -> None:
        self.read_key = _reader(key, None, "key", registry)
        self.read_value = _reader(value, None, "value", registry)

    def see(self, record: Record) -> RecordView:
        key, key_problem = _decoded(self.read_key, record, record.key)
        value, value_problem = _decoded(self.read_value, record, record.value)
        return RecordView(key, value, key_problem, value_problem)


DecoderFor = Callable[[str, str], RecordDecoder]
"""Chooses the decoder for records of a topic, and of a group where it is known."""


def undecoded(_topic: str, _group: str) -> RecordDecoder:
    """Decode by what the bytes look like."""
    return RecordDecoder()


@dataclass(frozen=True)
class Decoding:
    """The formats in which records can be shown, the usual one first, and what makes a decoder of a format's name."""

    formats: tuple[str, ...] = ("auto",)
    make: Callable[[str], DecoderFor] = lambda _name: undecoded

    def decoder_for(self, name: str) -> DecoderFor:
        """Return the decoder of this format; without a name, of the usual one."""
        chosen = name or self.formats[0]
        if chosen not in self.formats:
            raise ConfigError(f"{name!r} is not a known format.", hint=f"Use {', '.join(self.formats)}.")
        return self.make(chosen)


def by_app(app: App) -> DecoderFor:
    """Decode as the app's handler of the topic does, preferably that of the group, else as its pipeline does."""

    @cache
    def record_decoder_for(topic: str, group: str) -> RecordDecoder:
        handlers = [each for each in app.handlers if each.consumes(topic)]
        handler = next((each for each in handlers if each.group == group), handlers[0] if handlers else None)
        if handler is not None:
            return _ByRoute(handler) if isinstance(handler, RouteGroup) else _of_handler(handler)
        sources = [(each, source) for each in app.pipelines for source in each.sources.values()]
        for pipeline, source in sources:
            if topic in source.topics and source.ddl is None and source.kind is not bytes:
                return RecordDecoder(value=source.kind, registry=pipeline.registry)
        return RecordDecoder()

    return record_decoder_for


class _ByRoute(RecordDecoder):
    """Decodes each record as the route that takes it. A record that no route takes stays undecoded."""

    def __init__(self, group: RouteGroup) -> None:
        super().__init__()
        self._choose = choice(group, RECORDS)
        self._decoders = [_of_handler(route) for route in group.routes]

    def see(self, record: Record) -> RecordView:
        chosen = self._choose(record, 1)
        return self._decoders[chosen[0]].see(record) if isinstance(chosen, tuple) else super().see(record)


def _of_handler(handler: Handler) -> RecordDecoder:
    hints = handler.signature.hints
    record_decoder = RecordDecoder()
    record_decoder.read_value = _reader(handler.value, hints.get("value"), "value", handler.registry)
    record_decoder.read_key = _reader(handler.key, hints.get("key"), "key", handler.registry)
    return record_decoder


def _reader(how: Any, hint: Any, field: Field, registry: Registry | None) -> Read | None:
    if how is None and hint in (None, bytes):
        return None
    return reader_by(how, hint, RECORDS, field=field, registry=registry)


def _decoded(read: Read | None, record: Record, raw: bytes | None) -> tuple[Any, str | None]:
    if read is None or raw is None:
        return as_plain(readable(raw)), None
    try:
        return to_json(read(record)), None
    except (Undecodable, Skip, Reject, RecursionError) as error:
        return _undecoded(raw), str(error) or type(error).__name__
    except DependencyUnavailable as error:
        raise ServerError(
            f"{record} cannot be decoded: {error}.",
            hint="Check that the schema registry is running, or name another with --registry URL.",
        ) from error


def _undecoded(raw: bytes) -> Any:
    """Show bytes as text only if all characters are printable or spaces, else as hex."""
    found = readable(raw)
    is_odd = isinstance(found, str) and not all(each.isprintable() or each.isspace() for each in found)
    return as_plain(raw if is_odd else found)
