"""Configure an app: the file overrides the code, the environment the file, and the command line all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.app.application import App
from penstock.app.config.given_values import ALL, Given
from penstock.app.config.option_table import Kind, Option, app_options, options_of
from penstock.app.handler import Handler
from penstock.app.options import SETTINGS
from penstock.app.pipelines import Pipeline
from penstock.core.settings import translated
from penstock.errors import ConfigError

DEFAULT, CODE = "default", "code"

T = TypeVar("T")


@dataclass(frozen=True)
class Effective:
    """A value and its origin; ``parts`` has the origins of those parts of it that another source has set."""

    value: Any
    origin: str
    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def outside(self) -> list[str]:
        """The origins outside of code of the value and its parts."""
        return [at for at in dict.fromkeys((self.origin, *self.parts.values())) if at not in (DEFAULT, CODE)]


Values = dict[str, Effective]


@dataclass
class Part:
    """The values in effect for the app, or for one of its handlers or pipelines."""

    name: str
    kind: Kind | None = None
    options: Values = field(default_factory=dict)
    settings: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Configured:
    app: App
    of_app: Part
    of_handlers: list[Part]
    of_pipelines: list[Part]


def configured(app: App, sources: Sequence[Sequence[Given]]) -> Configured:
    """Configure this app. A later source overrides an earlier one; in one source, a value for a name overrides ``*``.

    Every handler and pipeline is declared again on a copy of the app, so that all checks of a declaration run on the
    new values. If a check fails, the app stays unchanged. Each call starts from the code's values, not from an earlier
    configuration.
    """
    of_app = _app_part(app)
    for source in sources:
        _apply(of_app, app_options(), [each for each in source if each.owner.kind is None])
    options = {name: each.value for name, each in of_app.options.items()}
    copy = _with_origins([of_app], lambda: App(app.name, **options, settings=_plain(of_app.settings)))
    parts: list[Part] = []
    declarations: list[tuple[Kind, Handler | Pipeline, Mapping[str, Any]]] = [
        *(("handler", *each) for each in app.declarations),
        *(("pipeline", *each) for each in app.pipeline_declarations),
    ]
    for kind, declaration, declared in declarations:
        part = _part(kind, declaration.name, declared)
        for source in sources:
            _apply(part, options_of(kind), _given_for(source, kind, part.name))
        parts.append(part)
        _declare(copy, declaration.function, parts)
    app.become(copy)
    made: list[Handler | Pipeline] = [*app.declared_handlers, *app.pipelines]
    complete = [_with_dependent_defaults(part, each) for part, each in zip(parts, made, strict=True)]
    split = len(app.declared_handlers)
    return Configured(app, of_app, complete[:split], complete[split:])


def _app_part(app: App) -> Part:
    options = {name: _declared(option, app.declared[name]) for name, option in app_options().items()}
    return Part(app.name, None, options, _from_code(app.declared[SETTINGS]))


def _part(kind: Kind, name: str, declared: Mapping[str, Any]) -> Part:
    options = {option: _declared(each, declared[option]) for option, each in options_of(kind).items()}
    return Part(name, kind, options, _from_code(declared[SETTINGS]))


def _from_code(settings: Mapping[str, Any]) -> Values:
    return {name: Effective(value, CODE) for name, value in settings.items()}


def _declared(option: Option, value: Any) -> Effective:
    return Effective(value, DEFAULT if value is option.default or value == option.default else CODE)


def _given_for(source: Sequence[Given], kind: Kind, name: str) -> list[Given]:
    """The values for this handler or pipeline, the most specific last. The app's settings apply to every one."""
    shared = [each for each in source if each.owner.kind is None and each.path[0] == SETTINGS]
    return [
        *shared,
        *(each for each in source if each.owner.is_for(kind, ALL)),
        *(each for each in source if each.owner.is_for(kind, name)),
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
        raise _with_origin_of(error, {name: each.origin for name, each in given.items()}) from error
    for each in checked:
        part.settings[each.name] = Effective(each.value, given[each.written].origin)


def _with_part(current: Effective, option: Option, name: str, given: Given) -> Effective:
    """The value with one part changed: ``retry.attempts`` keeps the other parts of ``retry``."""
    if option.record is None:  # pragma: no cover - only options with parts have paths into them
        raise TypeError(option.name)
    try:
        changed = option.record() if current.value is None else current.value
        value = replace(changed, **{name: given.value})
    except ConfigError as error:
        raise ConfigError(f"{given.origin}: {error.problem}", hint=error.hint) from error
    return Effective(value, current.origin, {**current.parts, name: given.origin})


def _declare(copy: App, function: Callable[..., Any], parts: Sequence[Part]) -> None:
    """Declare the function of the last of these parts. The declaration may conflict with one of the earlier parts."""
    part = parts[-1]
    declare: Callable[..., Any] = copy.consume if part.kind == "handler" else copy.pipeline
    options = {name: each.value for name, each in part.options.items()}
    topics = options.pop("topics")
    _with_origins(parts, lambda: declare(*topics, **options, settings=_plain(part.settings))(function))


def _with_origins(parts: Sequence[Part], make: Callable[[], T]) -> T:
    """Call ``make``, and prefix its error with the origins of the values that caused it, the last part first."""
    try:
        return make()
    except ConfigError as error:
        for part in reversed(parts):
            given = part.options | part.settings
            origins = {name: ", ".join(each.outside) for name, each in given.items() if each.outside}
            if origins:
                raise _with_origin_of(error, origins) from error
        raise


def _with_origin_of(error: ConfigError, origins: Mapping[str, str]) -> ConfigError:
    """The error with the origins of the options that it names; if it names none, with all origins."""
    named = [at for name, at in origins.items() if name in error.problem] or list(origins.values())
    prefix = ", ".join(dict.fromkeys(named))
    return ConfigError(f"{prefix}: {error.problem}" if prefix else error.problem, hint=error.hint)


def _plain(settings: Values) -> dict[str, Any]:
    return {name: each.value for name, each in settings.items()}


def _with_dependent_defaults(part: Part, declaration: Handler | Pipeline) -> Part:
    """Replace None by the value in effect where a default depends on other options, such as ``group`` and ``retry``."""
    for name, each in part.options.items():
        if each.value is None:
            part.options[name] = replace(each, value=getattr(declaration, name, None))
    return part
