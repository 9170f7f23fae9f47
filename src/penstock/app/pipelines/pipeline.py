"""``Pipeline``: a user's function over DataFrames with the options of its declaration, checked when it is declared."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from penstock.app.options import Delivery
from penstock.app.options.consume_options import is_topic_name
from penstock.app.pipelines.pipeline_options import OutputMode
from penstock.app.pipelines.pipeline_source import Source, as_source
from penstock.app.pipelines.sinks import Console, Sink, Topic, as_sink
from penstock.core.failures.retry import Retry
from penstock.core.settings import Registry, client_settings, hide_passwords
from penstock.errors import ConfigError

# The name of the one output of a pipeline that returns one DataFrame.
ONLY = ""


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """Durations are in seconds here; ``App.pipeline`` documents each option."""

    name: str
    function: Callable[..., Any]
    sources: Mapping[str, Source]
    outputs: Mapping[str, tuple[Sink, ...]]
    group: str
    dead_letter: str | None
    start: Literal["earliest", "latest"]
    output_mode: OutputMode
    delivery: Delivery
    trigger: float
    micro_batch: float
    max_micro_batch: int
    drain_timeout: float
    restart: Retry
    settings: Mapping[str, Any] = field(default_factory=dict)
    registry: Registry | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", client_settings(self.settings))
        self._check_function()
        self._check_choices()
        self._check_targets()
        if not isinstance(self.restart, Retry):
            raise self._wrong(f"restart={self.restart!r} is not a Retry.", "Use a Retry such as Retry(attempts=10).")
        limit = self.max_micro_batch
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise self._wrong(f"max_micro_batch={limit!r} is not a count.", "Use a whole number of at least 1.")
        if self.micro_batch <= 0:
            raise self._wrong(f"micro_batch={self.micro_batch:g} is not positive.", 'Use a duration such as "10s".')

    def __repr__(self) -> str:
        shown = (f"{each.name}={hide_passwords(repr(getattr(self, each.name)))}" for each in fields(self))
        return f"Pipeline({', '.join(shown)})"

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that it reads, without duplicates."""
        return tuple(dict.fromkeys(topic for source in self.sources.values() for topic in source.topics))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(sink for sinks in self.outputs.values() for sink in sinks)

    @property
    def expectations(self) -> tuple[str, ...]:
        """The conditions of all sources, without duplicates."""
        return tuple(dict.fromkeys(condition for source in self.sources.values() for condition in source.expect))

    @property
    def is_transactional(self) -> bool:
        """Whether one transaction commits rows and offsets. Only topics need it: other sinks know repeated batches."""
        return self.delivery == "exactly-once" and any(isinstance(sink, Topic) for sink in self.sinks)

    @property
    def target_topics(self) -> tuple[str, ...]:
        """The topics that it writes to, including the dead-letter topic."""
        named = (sink.name for sink in self.sinks if isinstance(sink, Topic))
        return tuple(dict.fromkeys((*named, *([self.dead_letter] if self.dead_letter is not None else []))))

    def _check_function(self) -> None:
        if not callable(self.function) or inspect.isclass(self.function):
            raise self._wrong("it is not a function.", "Decorate a function that takes and returns DataFrames.")
        if inspect.iscoroutinefunction(self.function):
            raise self._wrong("it is async, but a pipeline only describes a plan for Spark.", "Write it with def.")
        parameters = inspect.signature(self.function).parameters.values()
        required = [each.name for each in parameters if each.default is each.empty]
        if len(self.sources) == 1 and len(required) == 1:
            return
        if set(required) != set(self.sources):
            takes, has = ", ".join(required) or "nothing", ", ".join(self.sources)
            raise self._wrong(f"it takes ({takes}), but its sources are ({has}).", "Use the same names for both.")

    def _check_choices(self) -> None:
        if self.output_mode not in get_args(OutputMode):
            raise self._wrong(
                f"output_mode={self.output_mode!r} does not exist.", 'Use "append", "update" or "complete".'
            )
        if self.start not in ("earliest", "latest"):
            raise self._wrong(
                f"start={self.start!r} is not a position in a log.",
                'Use "earliest" or "latest". To read a range of offsets or times, run it with --from and --to.',
            )
        if self.delivery not in get_args(Delivery) or self.delivery == "at-most-once":
            raise self._wrong(
                f"delivery={self.delivery!r} does not work for pipelines.", 'Use "at-least-once" or "exactly-once".'
            )
        if self.is_transactional and (len(self.sinks) > 1 or len(self.sources) > 1):
            raise self._wrong(
                "exactly-once into a topic needs one source and one sink.",
                "Declare several pipelines, or leave delivery= out. Table and Jdbc sinks have each row once anyway.",
            )

    def _check_targets(self) -> None:
        if not self.outputs or not all(self.outputs.values()):
            raise self._wrong("it has no sink.", 'Name a sink: to="topic", to=Table(...), to=Jdbc(...).')
        if self.dead_letter is not None and not is_topic_name(self.dead_letter):
            raise self._wrong(
                f"{self.dead_letter!r} is not a topic name.",
                "Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
            )
        dead_lettered = [
            text for each in self.sources.values() for text, what in each.expect.items() if what == "dead_letter"
        ]
        if dead_lettered and self.dead_letter is None:
            raise self._wrong(
                f"rows that do not meet {dead_lettered[0]!r} become dead letters, and it has no topic for them.",
                'Name the topic with dead_letter=..., or use "drop" or "fail".',
            )
        for topic in self.target_topics:
            if topic in self.topics:
                raise self._wrong(
                    f"it writes to {topic!r}, which is also its source, so it would consume its own output.",
                    "Use another topic.",
                )
        if self.dead_letter in {sink.name for sink in self.sinks if isinstance(sink, Topic)}:
            raise self._wrong(
                f"rows and dead letters both go to {self.dead_letter!r}.", "Use another topic for dead letters."
            )
        duplicate = _first_duplicate([str(sink) for sink in self.sinks if not isinstance(sink, Console)])
        if duplicate is not None:
            raise self._wrong(f"it writes to {duplicate} twice.", "Name each sink once.")

    def _wrong(self, problem: str, hint: str) -> ConfigError:
        return ConfigError(f"Pipeline {self.name}: {problem}", hint=hint)


def checked_sources(given: Mapping[str, Any], *, function: Callable[..., Any]) -> dict[str, Source]:
    """The sources by the function's parameter names, from a value for every option."""
    topics, sources = tuple(given["topics"]), given["sources"]
    value, key, expect = given["value"], given["key"], given["expect"]
    if bool(topics) == bool(sources):
        raise ConfigError(
            "A pipeline needs either topics or sources=.",
            hint='Write @app.pipeline("orders", ...) or @app.pipeline(sources={"orders": Source(...)}, ...).',
        )
    if sources:
        if value is not bytes or key is not bytes or expect:
            raise ConfigError(
                "value=, key= and expect= have no effect with sources=.", hint="Pass them to Source(...)."
            )
        return {name: as_source(each) for name, each in sources.items()}
    parameters = list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
    return {parameters[0] if parameters else "records": Source(topics, value=value, key=key, expect=expect or {})}


def checked_outputs(to: Any) -> dict[str, tuple[Sink, ...]]:
    """The sinks by the keys of the dict that the function returns. Several sinks of one key get the same rows."""
    if isinstance(to, Mapping):
        return {name: _sinks(each) for name, each in to.items()}
    return {ONLY: _sinks(to)}


def _sinks(value: Any) -> tuple[Sink, ...]:
    return tuple(as_sink(each) for each in value) if isinstance(value, list | tuple) else (as_sink(value),)


def _first_duplicate(names: list[str]) -> str | None:
    return next((name for number, name in enumerate(names) if name in names[:number]), None)
