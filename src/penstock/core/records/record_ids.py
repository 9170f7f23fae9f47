"""``by``: what identifies a record, and for how long its id is remembered."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RecordId:
    """The value of ``dedupe=``. ``name`` is the field or the header; ``seconds`` is how long an id is remembered."""

    source: Literal["value", "header", "key"]
    name: str
    seconds: float

    def of_value(self, value: Any) -> Any:
        """The field of a decoded value, an object or a mapping; None if it has none."""
        if isinstance(value, dict):
            return value.get(self.name)
        return getattr(value, self.name, None)


class By:
    """``by("id", for_="1d")`` is a field of the value, ``by.header("id", ...)`` a header, ``by.key(...)`` the key."""

    def __call__(self, field: str, *, for_: Duration) -> RecordId:
        """The field of the decoded value that identifies a record; its id is remembered ``for_`` this time."""
        return _checked(RecordId("value", field, 0.0), for_)

    def header(self, name: str, *, for_: Duration) -> RecordId:
        """The header that identifies a record."""
        return _checked(RecordId("header", name, 0.0), for_)

    def key(self, *, for_: Duration) -> RecordId:
        """The key identifies a record."""
        return _checked(RecordId("key", "key", 0.0), for_)


by = By()


def digest(found: Any) -> str | None:
    """A text of fixed length for an id; None if the record has none. Text and bytes of the same letters are equal."""
    if found is None:
        return None
    raw = found if isinstance(found, bytes) else str(found).encode(errors="surrogatepass")
    return sha256(raw).hexdigest()


def _checked(declared: RecordId, for_: Duration) -> RecordId:
    if not isinstance(declared.name, str) or not declared.name:
        raise ConfigError(f"by({declared.name!r}) names no field or header.", hint='Write it as by("id", for_="1d").')
    window = seconds(for_, name="for_")
    if window <= 0:
        raise ConfigError(f"for_={for_!r} remembers no id.", hint='Use a duration such as "1d".')
    return replace(declared, seconds=window)
