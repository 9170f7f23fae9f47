"""The interface of codecs. A codec decodes and encodes the keys or the values of one handler in a format."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from penstock.core.records.record import Header
from penstock.core.settings import Registry
from penstock.errors import ConfigError
from penstock.serde.formats import Format

Field = Literal["key", "value"]
Headers = Iterable[Header] | None


class Codec(Protocol):
    """From bytes to values and back. Any number of threads may call it.

    It raises Undecodable for bytes that cannot be decoded, and DependencyUnavailable if the registry does not answer.
    """

    def decode(self, data: bytes, headers: Headers) -> Any: ...

    def reader(
        self,
        raw_of: Callable[[Any], bytes | None],
        headers_of: Callable[[Any], Headers],
        *,
        null: Callable[[], Any],
        convert: Callable[[Any], Any] | None,
    ) -> Callable[[Any], Any]:
        """A fast function from a record to its decoded value. It calls ``null`` if the value is null."""

    def encode(self, value: Any) -> tuple[bytes, tuple[Header, ...]]:
        """The bytes, and the headers of the record that have the schema id."""

    def is_known(self, data: bytes, headers: Headers) -> bool:
        """Whether decoding needs no request to the registry."""

    @property
    def can_encode(self) -> bool:
        """Whether encoding needs no request to the registry."""

    def get_ready(self) -> None:
        """Make the requests that encoding needs."""


class CodecOf(Protocol):
    """Makes the codec of a format. ``topic`` is the output topic, for encoding."""

    def __call__(self, format_: Format, *, registry: Registry | None, field: Field, topic: str | None = None) -> Codec:
        """``registry`` is the app's, for formats without their own."""


def no_codecs(format_: Format, *, registry: Registry | None, field: Field, topic: str | None = None) -> Codec:  # noqa: ARG001
    """For record adapters that decode only by type hint."""
    raise ConfigError(
        f"This record adapter has no codecs, and {type(format_).__name__} needs one.",
        hint="Use penstock.codecs.RECORDS.",
    )
