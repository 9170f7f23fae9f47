"""Options from flags such as ``--set ship.concurrency=200`` and ``--set settings.session.timeout.ms=45000``."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from penstock.app.config.given_values import ALL, Given, read_given, require_handler
from penstock.app.config.option_table import app_options, handler_options
from penstock.app.options import SETTINGS
from penstock.errors import ConfigError

_FORM = "Write NAME=VALUE, such as ship.concurrency=200 or settings.session.timeout.ms=45000."
_HANDLERS = "handlers"


def from_flags(flags: Iterable[str], handlers: Sequence[str]) -> list[Given]:
    """The values of the flags, in order. A name is an option of the app or of all handlers, or HANDLER.OPTION."""
    found: list[Given] = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        path = tuple(name.strip().split("."))
        # Without the value, which may be a password.
        origin = f"--set {name.strip()}"
        if not equals or not all(path):
            raise ConfigError(f"{origin} is not of the form NAME=VALUE.", hint=_FORM)
        handler, rest = _target(path, handlers, origin)
        if not rest or (rest == (SETTINGS,)):
            raise ConfigError(f"{origin} names no option.", hint=_FORM)
        found += read_given(handler, rest, value.strip(), origin)
    return found


def _target(path: tuple[str, ...], handlers: Sequence[str], origin: str) -> tuple[str | None, tuple[str, ...]]:
    first, *rest = path
    if first == _HANDLERS and rest:
        require_handler(rest[0], handlers, origin)
        return rest[0], tuple(rest[1:])
    if first == SETTINGS or first in app_options():
        return None, path
    if first in handler_options():
        return ALL, path
    if first in handlers or first == ALL:
        return first, tuple(rest)
    known = [*handlers, *app_options(), *handler_options(), SETTINGS]
    nearest = get_close_matches(first, known, n=1)
    hint = f"Did you mean {'.'.join((nearest[0], *rest))}?" if nearest else _FORM
    raise ConfigError(f"{origin}: there is no handler or option {first!r}.", hint=hint)
