"""One row of an option table: what an option is; for options of ``App.consume``, also which engines support it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Required, TypeVar, get_args, get_origin, get_type_hints

Engine = Literal["local", "spark", "testing", "share"]
"""``share`` is the part of the local engine that consumes share groups (``mode="share"``)."""

ENGINE_NAMES: Mapping[Engine, str] = {
    "local": "the local engine",
    "spark": "the Spark engine",
    "testing": "the testing kit",
    "share": "a share group",
}
ENGINE_HINTS: Mapping[Engine, str] = {
    "local": "Run it with --engine spark, or leave that option out.",
    "spark": "Run it with --engine local, or leave that option out.",
    "testing": "Test its function on named topics here, and this option on the embedded Kafka (penstock up).",
    "share": "Leave it out, or leave mode= out.",
}


@dataclass(frozen=True)
class Refused:
    """The engine raises an error before it starts, because it would not do what the option promises.

    ``allowed`` lists the values, besides the default, that the engine does support.
    """

    reason: str
    hint: str = ""
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ignored:
    """The engine accepts the option, and it has no effect there: nothing that the user relies on gets lost."""

    reason: str


Support = Refused | Ignored | None
"""None: the engine supports the option with all its values."""


@dataclass(frozen=True)
class DeclaredOption:
    """An option of ``App.consume`` or ``App.pipeline``.

    ``name``, ``hint`` (its type) and ``group`` come from the TypedDict that declares it. ``read_as`` is the type as
    which file, environment and flags read it, if that is not ``hint``.
    """

    default: Any
    text: str
    shown_default: str = ""  # for a default that another option or the app decides
    see: str = ""  # a link for the docs
    name: str = ""
    hint: Any = None
    group: str = ""
    read_as: Any = None


@dataclass(frozen=True, kw_only=True)
class HandlerOption(DeclaredOption):
    """An option of ``App.consume``, and how far each engine supports it."""

    of_route: bool = False  # the handlers of one route group may differ in it
    local: Support = None
    spark: Support = None
    testing: Support = None
    share: Support = None

    def on(self, engine: Engine) -> Support:
        support: Support = getattr(self, engine)
        return support

    def refusal(self, value: Any, engine: Engine) -> Refused | None:
        """Why the engine refuses this value of a handler; None if it accepts it."""
        support = self.on(engine)
        if not isinstance(support, Refused) or value == self.default or value in support.allowed:
            return None
        return support

    @property
    def words(self) -> tuple[str, ...]:
        """The words that the option takes, such as ``"earliest"`` and ``"latest"``."""
        literals = (each for each in (self.hint, *get_args(self.hint)) if get_origin(each) is Literal)
        return tuple(word for each in literals for word in get_args(each))

    def refused_words(self, engine: Engine) -> list[str]:
        return [word for word in self.words if self.refusal(word, engine) is not None]

    def written(self, value: Any) -> str:
        """The option as an error names it. The value is shown only of options that take words: a URL has passwords."""
        shown = f'"{value}"' if isinstance(value, str) else repr(value)
        return f"{self.name}={shown}" if self.words else self.name


Declared = TypeVar("Declared", bound=DeclaredOption)


def declared_options(groups: Mapping[str, type], kind: type[Declared]) -> dict[str, Declared]:
    """The options of these TypedDicts by name, in their order. Each is declared as ``Annotated[type, kind(...)]``."""
    found = {}
    for group, declared in groups.items():
        for name, annotation in get_type_hints(declared, include_extras=True).items():
            required = get_origin(annotation) is Required
            hint, option = get_args(get_args(annotation)[0] if required else annotation)
            if not isinstance(option, kind):  # pragma: no cover - a mistake in the declaration
                raise TypeError(name)
            found[name] = replace(option, name=name, hint=hint, group=group)
    return found
