"""Hides secrets (passwords, keys, tokens) in everything that Penstock prints or writes.

A process remembers every secret that it gets: ``Settings``, ``Registry``, sinks and stores register theirs when they
are created, also when they are unpickled in another process. All text that leaves the process (terminal, logs, events,
headers of dead letters, files) passes through ``redacted``.
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
# Secrets of at least this length are also hidden inside words. Secrets below _SHORTEST are not hidden at all: they
# would match too much of every text.
_UNMISTAKABLE_LENGTH = 8
_SHORTEST = 3
# Each line of a PEM file is a secret, because errors quote single lines; except the first and last, which are public.
_SHORTEST_LINE = 16
_PEM_BORDER = "-----"


class Settings(dict[str, Any]):
    """Validated client settings, under one name each. Printing hides secrets."""

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        super().__init__(settings or {})
        known.remember_settings(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle with the constructor, so that the receiving process also knows the secrets."""
        return Settings, (dict(self),)

    def __repr__(self) -> str:
        return repr({name: shown_setting(name, value) for name, value in self.items()})

    __str__ = __repr__


class KnownSecrets:
    """All secrets of this process. Any thread may add secrets; every later call, on any thread, hides them."""

    def __init__(self) -> None:
        self._texts: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def remember(self, *secrets: object) -> None:
        """Add secrets; values that are not text, or too short to tell from other words, are ignored."""
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
        """Add the password of a URL, both as written and decoded."""
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
        """For tests: the secrets of one test must not hide words in the next."""
        self._texts, self._pattern = frozenset(), None


known = KnownSecrets()


def redacted(text: str) -> str:
    """The text without any secret of this process, and without passwords in URLs."""
    return known.redacted(text)


def redacted_values(value: Any) -> Any:
    """As ``redacted``, for all texts in a value that will become JSON, which would escape quotes inside a secret."""
    if isinstance(value, str):
        return known.redacted(value)
    if isinstance(value, Mapping):
        return {name: redacted_values(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [redacted_values(each) for each in value]
    return value


def shown_command(arguments: Sequence[str]) -> str:
    """A command line without secrets: ``NAME=***`` if the name is that of a secret."""
    return redacted(shlex.join(_shown_argument(each) for each in arguments))


def _shown_argument(argument: str) -> str:
    for equals in re.finditer("=", argument):
        if is_secret(argument[: equals.start()]):
            return argument[: equals.end()] + HIDDEN
    return redacted(argument)


def is_secret(setting: str) -> bool:
    return _SECRET_NAME.search(setting) is not None


def shown_setting(name: str, value: Any) -> Any:
    """The value for printing: secrets as ``***``, functions by their names."""
    if is_secret(name):
        return HIDDEN
    return getattr(value, "__name__", repr(value)) if callable(value) else hide_passwords(value)


def hide_passwords(value: Any) -> Any:
    """The text without passwords in URLs."""
    return _URL_PASSWORD.sub(rf"\1{HIDDEN}@", value) if isinstance(value, str) else value


def scrubbed(text: str, settings: Mapping[str, Any]) -> str:
    """A text, such as an error of the client, without the secrets of these settings or of this process."""
    given = KnownSecrets()
    given.remember_settings(settings)
    return redacted(given.redacted(text))


def _forms(secret: str) -> Iterable[str]:
    """The secret as it is, its lines, and its forms when quoted in JSON, in Python or in a URL."""
    lines = [each for each in secret.split("\n") if len(each) >= _SHORTEST_LINE and not each.startswith(_PEM_BORDER)]
    for text in {secret, secret.strip(), *lines}:
        if len(text) >= _SHORTEST:
            yield from (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], repr(text)[1:-1])
            yield quote(text, safe="")


def _pattern(texts: frozenset[str]) -> re.Pattern[str]:
    """A pattern that tries the longest text first, because one secret may be part of another."""
    return re.compile("|".join(map(_matching, sorted(texts, key=lambda text: (-len(text), text)))))


def _matching(text: str) -> str:
    found = re.escape(text)
    return found if len(text) >= _UNMISTAKABLE_LENGTH else rf"(?<!\w){found}(?!\w)"
