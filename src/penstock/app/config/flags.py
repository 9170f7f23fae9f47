"""Options from flags such as ``--set ship.concurrency=200`` and ``--set settings.session.timeout.ms=45000``."""

from collections.abc import Iterable
from difflib import get_close_matches

from penstock.app.config.given_values import ALL, APP, KINDS, Given, Names, Owner, read_given, require_name
from penstock.app.config.option_table import Kind, app_options, handler_options, pipeline_options
from penstock.app.options import SETTINGS
from penstock.errors import ConfigError

_FORM = "Write NAME=VALUE, such as ship.concurrency=200 or settings.session.timeout.ms=45000."


def from_flags(flags: Iterable[str], names: Names) -> list[Given]:
    """The values of the flags, in order.

    A name is an option of the app or of all handlers, or NAME.OPTION of a handler or pipeline.
    """
    found: list[Given] = []
    for flag in flags:
        name, equals, value = flag.partition("=")
        path = tuple(name.strip().split("."))
        # Without the value, which may be a password.
        origin = f"--set {name.strip()}"
        if not equals or not all(path):
            raise ConfigError(f"{origin} is not of the form NAME=VALUE.", hint=_FORM)
        owner, rest = _target(path, names, origin)
        if not rest or (rest == (SETTINGS,)):
            raise ConfigError(f"{origin} names no option.", hint=_FORM)
        found += read_given(owner, rest, value.strip(), origin)
    return found


def _target(path: tuple[str, ...], names: Names, origin: str) -> tuple[Owner, tuple[str, ...]]:
    first, *rest = path
    if first in KINDS and rest:
        kind = KINDS[first]
        require_name(kind, rest[0], names[kind], origin)
        return Owner(kind, rest[0]), tuple(rest[1:])
    if first == SETTINGS or first in app_options():
        return APP, path
    if first in handler_options():
        return Owner("handler", ALL), path
    kinds: list[Kind] = ["handler"] if first == ALL else names.kinds_of(first)
    if len(kinds) > 1:
        raise ConfigError(
            f"{origin}: there are a handler and a pipeline {first!r}.",
            hint=f"Write handlers.{first}. or pipelines.{first}. before the option.",
        )
    if kinds:
        return Owner(kinds[0], first), tuple(rest)
    if first in pipeline_options():
        raise ConfigError(
            f"{origin}: {first!r} is an option of pipelines.", hint=f"Write pipelines.*.{'.'.join(path)}."
        )
    known = [*names.handlers, *names.pipelines, *app_options(), *handler_options(), SETTINGS]
    nearest = get_close_matches(first, known, n=1)
    hint = f"Did you mean {'.'.join((nearest[0], *rest))}?" if nearest else _FORM
    raise ConfigError(f"{origin}: there is no handler, pipeline or option {first!r}.", hint=hint)
