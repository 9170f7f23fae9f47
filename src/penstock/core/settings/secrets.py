"""What must never be shown: passwords, keys, tokens.

A process remembers every secret that it is given: ``Settings``, ``Registry``, sinks and stores announce theirs when
they are made, also when they arrive in another process. Whatever leaves the process as text (terminal, logs, events,
headers of dead letters, files) passes ``redacted`` on its way.
"""

import base64
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "***"

_SECRET_NAME = re.compile(
    r"(password|passphrase|secret|token|basic[._]auth[._]user[._]info|jaas\.config|oauthbearer\.(config|extensions)"
    r"|key\.pem|keystore\.key|ssl_key|secret[._]?(access[._]?)?key|api[._]?key)$",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"user[._]info$", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(\w://[^/\s:@]*:)[^/\s@]+@")
# From this length on a secret is looked for inside of words too; below the other it would hide half of every text.
_UNMISTAKABLE_LENGTH = 8
_SHORTEST = 3
# A line of a PEM file is known by itself, as errors quote single lines; its first and last are the same for everybody.
_SHORTEST_LINE = 16
_PEM_BORDER = "-----"


class Settings(dict[str, Any]):
    """Client settings, checked, by the names that Penstock keeps. Printed, they show no secret."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings or {})
        known.remember_settings(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """By the constructor, so that the process which gets them knows their secrets too."""
        return Settings, (dict(self),)

    def __repr__(self) -> str:
        return repr({name: shown_setting(name, value) for name, value in self.items()})

    __str__ = __repr__


class KnownSecrets:
    """All that this process was given. Any thread may add to it, and each sees all that was added before it asked."""

    def __init__(self) -> None:
        self._texts: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, *secrets: object) -> None:
        """Those that are no text, or too short to tell from other words, are left out."""
        found = {form for each in secrets if isinstance(each, str) for form in _forms(each)}
        if not found <= self._texts:
            self._texts |= found
            self._pattern = _pattern(self._texts)

    def remember_settings(self, settings: Mapping[str, Any]) -> None:
        for name, value in settings.items():
            if is_secret(name):
                self.remember(value)
            if isinstance(value, str) and _USER_INFO.search(name):
                self.remember(value.partition(":")[2], base64.b64encode(value.encode()).decode())
            elif isinstance(value, str) and "://" in value:
                self.remember_url(value)

    def remember_url(self, url: str) -> None:
        """The password in it, as it is written there and as it is meant."""
        try:
            password = urlsplit(url).password
        except ValueError:
            return
        if password:
            self.remember(password, unquote(password))

    def redacted(self, text: str) -> str:
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return _URL_PASSWORD.sub(rf"\1{HIDDEN}@", text) if "://" in text else text

    def forget(self) -> None:
        """For tests: what one of them was given must not hide words from the next."""
        self._texts, self._pattern = frozenset(), None


known = KnownSecrets()


def redacted(text: str) -> str:
    """The same text without any secret that this process was given, and without passwords in URLs."""
    return known.redacted(text)


def redacted_values(value: Any) -> Any:
    """The same for all texts in what is to become JSON, before its quotes change a secret that has some."""
    if isinstance(value, str):
        return known.redacted(value)
    if isinstance(value, Mapping):
        return {name: redacted_values(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_values(each) for each in value]
    return value


def shown_command(arguments: Sequence[str]) -> str:
    """A command line as it may be kept: ``NAME=***`` where the name is that of a secret."""
    return redacted(shlex.join(_shown_argument(each) for each in arguments))


def _shown_argument(argument: str) -> str:
    for equals in re.finditer("=", argument):
        if is_secret(argument[: equals.start()]):
            return argument[: equals.end()] + HIDDEN
    return redacted(argument)


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
    """A foreign text, such as the client's own error, without the secrets among these settings, or any known one."""
    given = KnownSecrets()
    given.remember_settings(settings)
    return redacted(given.redacted(text))


def _forms(secret: str) -> Iterable[str]:
    """As it is, by lines, and as it looks where it was quoted: in JSON, in Python, in a URL."""
    lines = [each for each in secret.split("\n") if len(each) >= _SHORTEST_LINE and not each.startswith(_PEM_BORDER)]
    for text in {secret, secret.strip(), *lines}:
        if len(text) >= _SHORTEST:
            yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
            yield quote(text, safe="")


def _pattern(texts: frozenset[str]) -> re.Pattern[str]:
    """The longest first: one secret may be a part of another."""
    return re.compile("|".join(map(_matching, sorted(texts, key=lambda text: (-len(text), text)))))


def _matching(text: str) -> str:
    found = re.escape(text)
    return found if len(text) >= _UNMISTAKABLE_LENGTH else rf"(?<!\w){found}(?!\w)"
