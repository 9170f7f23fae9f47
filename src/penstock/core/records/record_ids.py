"""``by``: what identifies a record, or the tenant that it belongs to; for ids, how long they are remembered."""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from penstock.core.text.durations import Duration, seconds
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True)
class RecordId:
    """``name`` is the field or the header. ``seconds`` is how long an id is remembered, 0 if that was not given.

    With ``before``, only the part of the key before this text counts.
    """

    source: Literal["value", "header", "key"]
    name: str
    seconds: float = 0.0
    before: str = ""

    def of_value(self, value: Any) -> Any:
        """The field of a decoded value, an object or a mapping; None if it has none."""
        if isinstance(value, dict):
            return value.get(self.name)
        return getattr(value, self.name, None)


class By:
    """``by("id")`` is a field of the value, ``by.header("id")`` a header, ``by.key()`` the key.

    ``for_`` is for ``dedupe=``: how long an id is remembered.
    """

    def __call__(self, field: str, *, for_: Duration | None = None) -> RecordId:
        """A field of the decoded value."""
        return _checked(RecordId("value", field), for_)

    def header(self, name: str, *, for_: Duration | None = None) -> RecordId:
        """A header."""
        return _checked(RecordId("header", name), for_)

    def key(self, *, before: str | None = None, for_: Duration | None = None) -> RecordId:
        """The key; with ``before=":"``, the part of it before the first colon, or all of it if it has none."""
        if before is not None and (not isinstance(before, str) or not before):
            raise ConfigError(f"before={before!r} is no text.", hint='Name what ends the prefix: by.key(before=":").')
        return _checked(RecordId("key", "key", before=before or ""), for_)


by = By()


def digest(found: Any) -> str | None:
    """A text of fixed length for an id; None if the record has none. Text and bytes of the same letters are equal."""
    if found is None:
        return None
    raw = found if isinstance(found, bytes) else str(found).encode(errors="surrogatepass")
    return sha256(raw).hexdigest()


def _checked(declared: RecordId, for_: Duration | None) -> RecordId:
    if not isinstance(declared.name, str) or not declared.name:
        raise ConfigError(f"by({declared.name!r}) names no field or header.", hint='Write it as by("id", for_="1d").')
    if for_ is None:
        return declared
    window = seconds(for_, name="for_")
    if window <= 0:
        raise ConfigError(f"for_={for_!r} remembers no id.", hint='Use a duration such as "1d".')
    return replace(declared, seconds=window)
