"""Options from variables such as ``PENSTOCK_SHIP_CONCURRENCY`` and ``PENSTOCK_SETTINGS_SESSION_TIMEOUT_MS``."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

from penstock.app.config.given_values import ALL, APP, KINDS, Given, Names, Owner, read_given
from penstock.app.config.option_table import Option, app_options, handler_options, options_of
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

_Target = tuple[Owner, tuple[str, ...]]


def from_environment(environment: Mapping[str, str], names: Names) -> list[Given]:
    """The values that the variables set. An empty variable counts as not set."""
    targets = _targets(names)
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
            both = " or ".join(".".join((*_words(owner), *path)) for owner, path in matching[:2])
            raise ConfigError(
                f"{variable} could mean {both}.",
                hint="Set it in penstock.toml or with --set, where the two names differ.",
            )
        ((owner, path),) = matching
        found += read_given(owner, path, text, variable)
    return found


def _targets(names: Names) -> dict[str, list[_Target]]:
    targets: dict[str, list[_Target]] = defaultdict(list)
    for path in _paths(app_options()):
        targets[_variable(path)].append((APP, path))
    for path in _paths(handler_options()):
        if path[0] != SETTINGS:  # settings for all handlers are those of the app
            targets[_variable(path)].append((Owner("handler", ALL), path))
    for kind in KINDS.values():
        for name in dict.fromkeys(names[kind]):
            for path in _paths(options_of(kind)):
                targets[_variable((name, *path))].append((Owner(kind, name), path))
    return targets


def _words(owner: Owner) -> tuple[str, ...]:
    return ("app",) if owner.kind is None else (f"{owner.kind}s", owner.name)


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
        else "Variables are PENSTOCK_OPTION, PENSTOCK_NAME_OPTION and PENSTOCK_SETTINGS_NAME; see docs/settings.md."
    )
    return ConfigError(f"The variable {variable} names no option of this app.", hint=hint)
