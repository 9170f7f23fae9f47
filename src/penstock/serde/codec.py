"""What a codec does: a format at work, for the keys or the values of one handler."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from penstock.core.records.record import Header
from penstock.core.settings import Registry
from penstock.errors import ConfigError
from penstock.serde.formats import Format

Field = Literal["key", "value"]
Headers = Iterable[Header] | None


class Codec(Protocol):
    """From bytes to values and back, for any number of threads.

    Bytes that cannot be decoded raise Undecodable; where the registry would have to answer and is away, that is Away.
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
        """From a record to its decoded value, in as few calls as can be; ``null`` is for records that have none."""

    def encode(self, value: Any) -> tuple[bytes, tuple[Header, ...]]:
        """The bytes, and the headers that go with them."""

    def is_known(self, data: bytes, headers: Headers) -> bool:
        """Whether decoding this asks nobody."""

    @property
    def can_encode(self) -> bool:
        """Whether encoding asks nobody."""

    def get_ready(self) -> None:
        """Ask for what encoding needs."""


class CodecOf(Protocol):
    """The codec of a format; for encoding with the topic that is written to."""

    def __call__(self, format_: Format, *, registry: Registry | None, field: Field, topic: str | None = None) -> Codec:
        """The registry is the app's, for formats that have none of their own."""


def no_codecs(format_: Format, *, registry: Registry | None, field: Field, topic: str | None = None) -> Codec:  # noqa: ARG001
    """Where only type hints are at work."""
    raise ConfigError(
        f"{type(format_).__name__} is not at hand here.", hint="Read records with penstock.codecs.RECORDS."
    )
