"""What must never be shown: passwords, keys, tokens."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|basic[._]auth[._]user[._]info|jaas\.config|oauthbearer\.(config|extensions)|key\.pem|keystore\.key|ssl_key)$"
)
_URL_PASSWORD = re.compile(r"(\w://[^/\s:@]*:)[^/\s@]+@")
# From this length on a secret is looked for inside of words too.
_UNMISTAKABLE_LENGTH = 8


class Settings(dict[str, Any]):
    """Client settings, checked, by the names that Penstock keeps. Printed, they show no secret."""

    def __repr__(self) -> str:
        return repr({name: shown_setting(name, value) for name, value in self.items()})

    __str__ = __repr__


def is_secret(setting: str) -> bool:
    return _SECRET_NAME.search(setting) is not None


def shown_setting(name: str, value: Any) -> Any:
    """The value as it may be shown: secrets as ``***``, functions by their names."""
    if is_secret(name):
        return HIDDEN
    return getattr(value, "__name__", repr(value)) if callable(value) else hide_passwords(value)


def hide_passwords(value: Any) -> Any:
    """The same text, without the password of a URL in it."""
    return _URL_PASSWORD.sub(rf"\1{HIDDEN}@", value) if isinstance(value, str) else value


def scrubbed(text: str, settings: Mapping[str, Any]) -> str:
    """A foreign text, such as the client's own error, without the secrets among these settings."""
    for name, value in settings.items():
        if is_secret(name) and isinstance(value, str) and value:
            found = re.escape(value) if len(value) >= _UNMISTAKABLE_LENGTH else rf"(?<!\w){re.escape(value)}(?!\w)"
            text = re.sub(found, HIDDEN, text)
    return hide_passwords(text)  # type: ignore[no-any-return]
