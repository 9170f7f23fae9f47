"""Translates and validates settings that users write under librdkafka's or Java's names; each gets one name."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from penstock.core.settings import java_names
from penstock.core.settings.key_stores import translate_store
from penstock.core.settings.logins import parse_jaas
from penstock.core.settings.names import ALIASES, SETTINGS
from penstock.core.settings.reserved import RESERVED
from penstock.core.settings.secrets import Settings
from penstock.core.settings.setting_values import checked_value
from penstock.errors import ConfigError

# The names that users may write; errors suggest the one most similar to an unknown name.
WRITABLE = (frozenset(SETTINGS) | java_names.TRANSLATED) - frozenset(RESERVED)
_ANY = WRITABLE | frozenset(RESERVED) | frozenset(java_names.ABSENT)


@dataclass(frozen=True, slots=True)
class Translated:
    """One setting under the name that Penstock uses; ``written`` is the name that the user wrote."""

    name: str
    value: Any
    written: str


def client_settings(settings: Mapping[str, Any]) -> Settings:
    """The validated settings; None means not set. Validating them again changes nothing."""
    checked = Settings({each.name: each.value for each in translated(settings)})
    _check_together(checked)
    return checked


def translated(settings: Mapping[str, Any]) -> list[Translated]:
    """Each setting under the name that Penstock uses, with its value validated, in the order of ``settings``."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        require_known(name)
    found: list[Translated] = []
    for written, value in given.items():
        if written in java_names.LOGINS:
            parts = parse_jaas(value)
        elif written in java_names.STORES:
            parts = translate_store(written, given)
        else:
            parts = {_kept_name(written): _java_value(written, value)}
        for name, part in parts.items():
            found.append(Translated(name, checked_value(SETTINGS[name], part, written=written), written))
    return found


def require_known(name: str) -> None:
    """Raise ConfigError, with what to write instead, if users cannot set this setting."""
    if name in WRITABLE:
        return
    if name in RESERVED:
        raise ConfigError(f"The setting {name!r} is reserved for Penstock.", hint=RESERVED[name])
    if name in java_names.ABSENT:
        raise ConfigError(f"The setting {name!r} does not exist in this client.", hint=java_names.ABSENT[name])
    nearest = get_close_matches(str(name), _ANY, n=1, cutoff=0.7)
    hint = f"Did you mean {nearest[0]!r}?" if nearest else "Settings go by the names of librdkafka or the Java client."
    raise ConfigError(f"The setting {name!r} is not known.", hint=hint)


def _kept_name(written: str) -> str:
    renamed = java_names.RENAMED.get(written) or java_names.BYTES_TO_KBYTES.get(written) or written
    return ALIASES.get(renamed, renamed)


def _java_value(name: str, value: Any) -> Any:
    """A value in Java's notation, translated into librdkafka's."""
    if name in java_names.MINUS_ONE_IS_ZERO and str(value) == "-1":
        return 0
    if name in java_names.BYTES_TO_KBYTES and str(value).isdecimal():
        return -(-int(value) // 1024)
    if name == "ssl.endpoint.identification.algorithm" and value == "":
        return "none"
    return value


def _check_together(settings: Settings) -> None:
    """Check pairs of settings that librdkafka accepts silently, or rejects only when it connects."""
    for small, large, strictly in (
        ("heartbeat.interval.ms", "session.timeout.ms", True),
        ("session.timeout.ms", "max.poll.interval.ms", False),
        ("reconnect.backoff.ms", "reconnect.backoff.max.ms", False),
        ("retry.backoff.ms", "retry.backoff.max.ms", False),
    ):
        low, high = settings.get(small), settings.get(large)
        if low is not None and high is not None and (low > high or (strictly and low == high)):
            raise ConfigError(
                f"The setting {small!r} is {low} and {large!r} is {high}.",
                hint=f"{small} must be {'shorter' if strictly else 'no longer'} than {large}.",
            )
