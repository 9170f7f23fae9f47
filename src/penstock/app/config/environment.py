"""Options from variables such as ``PENSTOCK_SHIP_CONCURRENCY`` and ``PENSTOCK_SETTINGS_SESSION_TIMEOUT_MS``."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from penstock.app.config.given_values import ALL, Given, read_given
from penstock.app.config.option_table import Option, app_options, handler_options
from penstock.app.options import SETTINGS
from penstock.core.settings import WRITABLE
from penstock.errors import ConfigError

_PREFIX = "PENSTOCK_"
# Variables that other parts of Penstock read.
OTHERS = frozenset(
    {
        "PENSTOCK_CACHE",
        "PENSTOCK_CONFIG",
        "PENSTOCK_HOME",
        "PENSTOCK_MAVEN_URL",
        "PENSTOCK_SPARK_LOG",
        "PENSTOCK_UNTESTED_SPARK",
    }
)
# Kubernetes sets such variables for every service, and a service may be called penstock.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$")

_Target = tuple[str | None, tuple[str, ...]]


def from_environment(environment: Mapping[str, str], handlers: Sequence[str]) -> list[Given]:
    """The values that the variables set. An empty variable counts as not set."""
    targets = _targets(handlers)
    found: list[Given] = []
    for variable, text in sorted(environment.items()):
        if not variable.startswith(_PREFIX) or not text or variable in OTHERS:
            continue
        matching = targets.get(variable)
        if matching is None:
            if _SERVICE_LINK.search(variable):
                continue
            raise _unknown(variable, targets)
        if len(matching) > 1:
            both = " or ".join(".".join((handler or "app", *path)) for handler, path in matching[:2])
            raise ConfigError(
                f"{variable} could mean {both}.",
                hint="Set it in penstock.toml or with --set, where the two names differ.",
            )
        ((handler, path),) = matching
        found += read_given(handler, path, text, variable)
    return found


def _targets(handlers: Sequence[str]) -> dict[str, list[_Target]]:
    targets: dict[str, list[_Target]] = defaultdict(list)
    for path in _paths(app_options()):
        targets[_variable(path)].append((None, path))
    for handler in (ALL, *dict.fromkeys(handlers)):
        for path in _paths(handler_options()):
            # Settings for all handlers are those of the app.
            if handler == ALL and path[0] == SETTINGS:
                continue
            targets[_variable(path if handler == ALL else (handler, *path))].append((handler, path))
    return targets


def _paths(options: Mapping[str, Option]) -> Iterator[tuple[str, ...]]:
    for name, option in options.items():
        yield (name,)
        yield from ((name, part) for part in option.parts)
    yield from ((SETTINGS, name) for name in WRITABLE)


def _variable(path: Sequence[str]) -> str:
    return _PREFIX + re.sub(r"\W", "_", "_".join(path)).upper()


def _unknown(variable: str, targets: Mapping[str, object]) -> ConfigError:
    known = [each.removeprefix(_PREFIX) for each in (*targets, *OTHERS)]
    nearest = get_close_matches(variable.removeprefix(_PREFIX), known, n=1)
    hint = (
        f"Did you mean {_PREFIX}{nearest[0]}?"
        if nearest
        else "Variables are PENSTOCK_OPTION, PENSTOCK_HANDLER_OPTION and PENSTOCK_SETTINGS_NAME; see docs/settings.md."
    )
    return ConfigError(f"The variable {variable} names no option of this app.", hint=hint)
