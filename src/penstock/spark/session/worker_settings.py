"""The settings of Kafka clients on other machines: certificates and keys travel as text, because files stay here."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from penstock.core.settings import Settings
from penstock.errors import ConfigError

Read = Callable[[str], str]

# Settings that name a file, and the settings that take its text.
PEM_TEXTS = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}


def read_file(path: str) -> str:
    return Path(path).read_text()


def settings_for_workers(settings: Mapping[str, Any], *, read: Read = read_file) -> Settings:
    """Return the settings for librdkafka on other machines, with files replaced by their text."""
    return Settings(
        dict(
            (PEM_TEXTS[name], read_text(name, value, read)) if name in PEM_TEXTS else (name, value)
            for name, value in settings.items()
        )
    )


def read_text(name: str, path: str, read: Read) -> str:
    try:
        return read(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        raise ConfigError(
            f"The file of {name} cannot be read: {path}: {reason.lower()}.",
            hint="Name a PEM file that is readable here.",
        ) from error
