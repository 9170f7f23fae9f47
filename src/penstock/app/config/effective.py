"""One app out of code, file, environment and command line, each over what comes before it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.app.application import App
from penstock.app.config.given_values import ALL, Given
from penstock.app.config.option_table import Option, app_options, handler_options
from penstock.app.handler import Handler
from penstock.app.options import SETTINGS
from penstock.core.settings import translated
from penstock.errors import ConfigError

DEFAULT, CODE = "default", "code"

T = TypeVar("T")


@dataclass(frozen=True)
class Effective:
    """A value and where it came from; ``parts`` names those parts of it that came from elsewhere."""

    value: Any
    origin: str
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def outside(self) -> list[str]:
        """The places outside of code that gave it, or a part of it."""
        return [at for at in dict.fromkeys((self.origin, *self.parts.values())) if at not in (DEFAULT, CODE)]


Values = dict[str, Effective]


@dataclass
class Part:
    """The app, or one of its handlers: what is in effect for it."""

    name: str
    options: Values = field(default_factory=dict)
    settings: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Configured:
    app: App
    of_app: Part
    of_handlers: list[Part]


def configured(app: App, sources: Sequence[Sequence[Given]]) -> Configured:
    """Configure this app by the sources: a later one overrides an earlier; within one, a handler's own overrides all.

    Every handler is declared again on a copy, so that the checks of a declaration hold for what was configured. If one
    of them fails, the app stays as it is. Configured twice, it starts from its code again.
    """
    of_app = _app_part(app)
    for source in sources:
        _apply(of_app, app_options(), [each for each in source if each.handler is None])
    options = {name: each.value for name, each in of_app.options.items()}
    twin = _blaming([of_app], lambda: App(app.name, **options, settings=_plain(of_app.settings)))
    parts = []
    for handler, declared in app.declarations:
        part = _handler_part(handler, declared)
        for source in sources:
            _apply(part, handler_options(), _for_handler(source, handler.name))
        parts.append(part)
        _declare(twin, handler, parts)
    _blaming([of_app], lambda: twin.take_pipelines_of(app))
    app.become(twin)
    return Configured(app, of_app, [_as_seen(part, each) for part, each in zip(parts, app.handlers, strict=True)])


def _app_part(app: App) -> Part:
    options = {name: _declared(option, app.declared[name]) for name, option in app_options().items()}
    return Part(app.name, options, _from_code(app.declared[SETTINGS]))


def _handler_part(handler: Handler, declared: Mapping[str, Any]) -> Part:
    options = {name: _declared(option, declared[name]) for name, option in handler_options().items()}
    return Part(handler.name, options, _from_code(declared[SETTINGS]))


def _from_code(settings: Mapping[str, Any]) -> Values:
    return {name: Effective(value, CODE) for name, value in settings.items()}


def _declared(option: Option, value: Any) -> Effective:
    return Effective(value, DEFAULT if value is option.default or value == option.default else CODE)


def _for_handler(source: Sequence[Given], name: str) -> list[Given]:
    """The app's settings are for every handler too."""
    shared = [each for each in source if each.handler is None and each.path[0] == SETTINGS]
    return [
        *shared,
        *(each for each in source if each.handler == ALL),
        *(each for each in source if each.handler == name),
    ]


def _apply(part: Part, options: Mapping[str, Option], given: Sequence[Given]) -> None:
    _apply_settings(part, {each.path[1]: each for each in given if each.path[0] == SETTINGS})
    for each in given:
        name, *inner = each.path
        if name == SETTINGS:
            continue
        if not inner:
            part.options[name] = Effective(each.value, each.origin)
            continue
        part.options[name] = _with_part(part.options[name], options[name], inner[0], each)


def _apply_settings(part: Part, given: Mapping[str, Given]) -> None:
    written = {name: each.value for name, each in given.items()}
    try:
        checked = translated(written)
    except ConfigError as error:
        raise _blamed(error, {name: each.origin for name, each in given.items()}) from error
    for each in checked:
        part.settings[each.name] = Effective(each.value, given[each.written].origin)


def _with_part(current: Effective, option: Option, name: str, given: Given) -> Effective:
    """The same object with one part of it changed: ``retry.attempts`` leaves the rest of ``retry`` as it is."""
    if option.record is None:  # pragma: no cover - only options with parts have paths into them
        raise TypeError(option.name)
    try:
        changed = option.record() if current.value is None else current.value
        value = replace(changed, **{name: given.value})
    except ConfigError as error:
        raise ConfigError(f"{given.origin}: {error.problem}", hint=error.hint) from error
    return Effective(value, current.origin, {**current.parts, name: given.origin})


def _declare(twin: App, handler: Handler, parts: Sequence[Part]) -> None:
    """The handler of the last of these parts; its declaration may clash with those before it."""
    part = parts[-1]
    options = {name: each.value for name, each in part.options.items()}
    topics = options.pop("topics")
    _blaming(parts, lambda: twin.consume(*topics, **options, settings=_plain(part.settings))(handler.function))


def _blaming(parts: Sequence[Part], make: Callable[[], T]) -> T:
    """What ``make`` makes of the last of these parts; its error tells where the values came from."""
    try:
        return make()
    except ConfigError as error:
        for part in reversed(parts):
            given = part.options | part.settings
            origins = {name: ", ".join(each.outside) for name, each in given.items() if each.outside}
            if origins:
                raise _blamed(error, origins) from error
        raise


def _blamed(error: ConfigError, origins: Mapping[str, str]) -> ConfigError:
    """The same error, with the places that gave what it speaks of; where that is not clear, with all of them."""
    named = [at for name, at in origins.items() if name in error.problem] or list(origins.values())
    places = ", ".join(dict.fromkeys(named))
    return ConfigError(f"{places}: {error.problem}" if places else error.problem, hint=error.hint)


def _plain(settings: Values) -> dict[str, Any]:
    return {name: each.value for name, each in settings.items()}


def _as_seen(part: Part, handler: Handler) -> Part:
    """With what the handler makes of what was left open: its group, its ``Retry()``."""
    for name, each in part.options.items():
        if each.value is None:
            part.options[name] = replace(each, value=getattr(handler, name, None))
    return part
