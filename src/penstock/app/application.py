"""``App``: the handlers and pipelines that a user's module declares, and that ``penstock run`` or the module runs."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, Never, TypeVar, Unpack

from penstock.app.conflicts import check_handlers, check_pipeline
from penstock.app.handler import Handler
from penstock.app.hooks import HookMethods
from penstock.app.options import HANDLER_OPTIONS, SETTINGS, ConsumeOptions, with_defaults
from penstock.app.options.consume_options import is_offset, is_topic_partition
from penstock.app.options.option_reference import documented
from penstock.app.options.option_values import handler_values
from penstock.app.pipelines import (
    PIPELINE_OPTIONS,
    Pipeline,
    PipelineOptions,
    checked_outputs,
    checked_sources,
    pipeline_values,
)
from penstock.app.resources.declared_resources import ResourceMethods
from penstock.app.routing.route_group import with_route_groups
from penstock.app.runs.live_methods import LiveMethods
from penstock.app.runs.run_control import Control, ControlSlot, PartitionProgress
from penstock.app.runs.run_methods import RunMethods
from penstock.app.signature import function_name
from penstock.core.records.record import TopicPartition
from penstock.core.settings import Registry, client_settings, hide_passwords, registry_of
from penstock.core.text.suggestions import refuse_unknown
from penstock.errors import ConfigError, StateError

F = TypeVar("F", bound=Callable[..., Any])

_APP_OPTIONS = ("brokers", "settings", "registry", "create_topics")


class App(RunMethods, LiveMethods, HookMethods, ResourceMethods):
    """A named set of handlers.

    Args:
        name: The name of the app, and the consumer group of its handlers unless they set ``group``.
        brokers: Bootstrap servers, such as ``"localhost:9092"``. ``penstock run`` overrides it with ``--brokers``,
            ``PENSTOCK_BROKERS`` or ``penstock.toml``, and ``app.run`` with ``brokers=`` or ``PENSTOCK_BROKERS``. If
            none is set, both use the embedded Kafka of ``penstock up``.
        settings: Kafka client settings by their Kafka names, for every handler.
        registry: The schema registry for ``Avro``, ``JsonSchema`` and ``Protobuf``: a URL, or a mapping of its
            client's settings, such as ``{"url": ..., "basic.auth.user.info": "user:password"}``.
        create_topics: Whether Penstock creates missing output, dead-letter and retry topics, with as many partitions
            as the source. If False, a missing topic is an error. Penstock never creates source topics.
    """

    def __init__(
        self,
        name: str,
        *,
        brokers: str | None = None,
        settings: Mapping[str, Any] | None = None,
        registry: Registry | str | Mapping[str, Any] | None = None,
        create_topics: bool = True,
        **_unknown: Never,
    ) -> None:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(
                f"App({name!r}) has no name.", hint='Name it: App("shop"). The name is the consumer group.'
            )
        _refuse_unknown(_unknown)
        RunMethods.__init__(self)
        HookMethods.__init__(self)
        ResourceMethods.__init__(self)
        self.name = name
        self.brokers = brokers
        self.settings = client_settings(settings or {})
        self.registry = registry_of(registry)
        self.create_topics = create_topics
        # The values from code, here and in _declared: each `penstock run` overrides them with file, environment, flags.
        self._declared_options = {name: getattr(self, name) for name in _APP_OPTIONS}
        self._handlers: list[Handler] = []
        self._declared: list[Mapping[str, Any]] = []
        self._pipelines: list[Pipeline] = []
        self._declared_pipelines: list[Mapping[str, Any]] = []
        self._slot = ControlSlot()

    def __repr__(self) -> str:
        names = ", ".join([*(each.name for each in self._handlers), *(each.name for each in self._pipelines)])
        return f"App({self.name!r}, brokers={hide_passwords(repr(self.brokers))}, handlers=[{names}])"

    @property
    def handlers(self) -> tuple[Handler, ...]:
        """The handlers as engines run them: several that share a member (``when=``) are one ``RouteGroup``."""
        return with_route_groups(self._handlers)

    @property
    def declared_handlers(self) -> tuple[Handler, ...]:
        """The handlers as they were declared, one for each function."""
        return tuple(self._handlers)

    @property
    def pipelines(self) -> tuple[Pipeline, ...]:
        """The pipelines as they were declared."""
        return tuple(self._pipelines)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that Spark needs for the sources and sinks of the pipelines, besides the one for Kafka."""
        parts = (part for each in self._pipelines for part in (*each.sources.values(), *each.sinks))
        return tuple(dict.fromkeys(name for part in parts for name in part.packages))

    @documented(HANDLER_OPTIONS)
    def consume(self, *topics: str, **options: Unpack[ConsumeOptions]) -> Callable[[F], F]:
        """Declare a function as the handler of these topics. The function itself does not change.

        ``ConsumeOptions`` in ``penstock.app.options`` declares and describes each option; docs/running.md lists them.
        """
        declared = with_defaults(HANDLER_OPTIONS, topics, options, of="@app.consume")

        def declare(function: F) -> F:
            values = handler_values(declared, app=self.name, app_settings=self.settings)
            name = function_name(function)
            self._add(Handler(app=self.name, name=name, function=function, registry=self.registry, **values))
            own = {**self._declared_options[SETTINGS], **(declared[SETTINGS] or {})}
            self._declared.append({**declared, SETTINGS: client_settings(own)})
            return function

        return declare

    @documented(PIPELINE_OPTIONS)
    def pipeline(self, *topics: str, **options: Unpack[PipelineOptions]) -> Callable[[F], F]:
        """Declare a function over Spark DataFrames as a pipeline, which ``penstock run --engine spark`` runs.

        Penstock calls the function once, when the app starts. It gets a streaming DataFrame for each source and returns
        one DataFrame, or a dict of them. Spark runs the plan that they describe, without Python for each record.
        """
        declared = with_defaults(PIPELINE_OPTIONS, topics, options, of="@app.pipeline")

        def declare(function: F) -> F:
            pipeline = Pipeline(
                name=function_name(function),
                function=function,
                sources=checked_sources(declared, function=function),
                outputs=checked_outputs(declared["to"]),
                registry=self.registry,
                **pipeline_values(declared, app=self.name, app_settings=self.settings),
            )
            self._add_pipeline(pipeline)
            own = {**self._declared_options[SETTINGS], **(declared[SETTINGS] or {})}
            self._declared_pipelines.append({**declared, SETTINGS: client_settings(own)})
            return function

        return declare

    def refuse_pipelines(self, *, where: str, hint: str) -> None:
        """Raise an error if the app has pipelines: engines other than Spark call it, as they would not run them."""
        if self._pipelines:
            names = ", ".join(pipeline.name for pipeline in self._pipelines)
            raise ConfigError(
                f"App {self.name!r} has DataFrame pipelines ({names}), which {where} does not run.", hint=hint
            )

    @property
    def declared(self) -> Mapping[str, Any]:
        """The app's options as the code gave them, without file, environment and flags."""
        return self._declared_options

    @property
    def declarations(self) -> tuple[tuple[Handler, Mapping[str, Any]], ...]:
        """Each handler with the options that the code gave to ``consume``, including the app's settings."""
        return tuple(zip(self._handlers, self._declared, strict=True))

    @property
    def pipeline_declarations(self) -> tuple[tuple[Pipeline, Mapping[str, Any]], ...]:
        """Each pipeline with the options that the code gave to ``pipeline``, including the app's settings."""
        return tuple(zip(self._pipelines, self._declared_pipelines, strict=True))

    def become(self, configured: "App") -> None:
        """Take over the options, handlers and pipelines of a configured copy of this app.

        The engine then runs this object, which the user's module holds, so that handlers can call ``app.progress()``.
        """
        if self._slot.is_held:
            raise StateError(f"App {self.name!r} is running, so it cannot be configured.", hint="Stop it first.")
        for name in _APP_OPTIONS:
            setattr(self, name, getattr(configured, name))
        self._handlers = [*configured.declared_handlers]
        self._pipelines = [*configured.pipelines]

    def narrow(self, change: Callable[[Handler], Handler | None]) -> None:
        """Keep only the handlers that ``change`` returns, and no pipelines: for a replay of a range."""
        if self._slot.is_held:
            raise StateError(f"App {self.name!r} is running, so it cannot be replayed.", hint="Stop it first.")
        changed = [(change(handler), declared) for handler, declared in self.declarations]
        self._handlers, self._declared, self._pipelines = [], [], []
        for handler, declared in changed:
            if handler is not None:
                self._add(handler)
                self._declared.append(declared)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """After the block, the app has the handlers and pipelines that it had before, whatever ``narrow`` left out."""
        kept = self._handlers, self._declared, self._pipelines
        try:
            yield
        finally:
            self._handlers, self._declared, self._pipelines = kept

    def variant(self, name: str, rename: Callable[[Handler], Mapping[str, Any]]) -> "App":
        """A copy of the app with another name. ``rename`` returns the options to replace for each handler."""
        copy = App(
            name,
            brokers=self.brokers,
            settings=self.settings,
            registry=self.registry,
            create_topics=self.create_topics,
        )
        for handler, declared in self.declarations:
            changes = rename(handler)
            copy._add(replace(handler, **{"app": name, **changes}))
            copy._declared.append({**declared, **changes})
        for pipeline, declared in self.pipeline_declarations:
            copy._add_pipeline(replace(pipeline, group=name if pipeline.group == self.name else pipeline.group))
            copy._declared_pipelines.append(declared)
        copy.take_hooks_of(self)
        copy.take_resources_of(self)
        return copy

    def progress(self) -> list[PartitionProgress]:
        """The progress of each owned partition.

        Any thread may call it while the local engine runs the app in this process.
        """
        return self._slot.get(self.name).progress()

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """With ``commit="manual"``: mark all handled records below these offsets as finished, and commit at once.

        Any thread may call it while the local engine runs the app in this process.
        """
        for tp, offset in offsets.items():
            if not is_topic_partition(tp) or not is_offset(offset):
                raise ConfigError(
                    f"app.commit({{{tp!r}: {offset!r}}}) does not name an offset of a partition.",
                    hint='Write app.commit({("orders", 0): 42}) if all records below offset 42 are finished.',
                )
        self._slot.get(self.name).commit(offsets)

    def controlled_by(self, control: Control) -> AbstractContextManager[None]:
        """For engines: inside the block, ``control`` answers ``progress`` and ``commit``; no other engine may run."""
        return self._slot.held_by(control, self.name)

    def attach_control(self, control: Control) -> None:
        """For the testing kit: ``control`` answers until ``detach_control``, or until another bench attaches one."""
        self._slot.attach(control, self.name)

    def detach_control(self, control: Control) -> None:
        self._slot.detach(control)

    def _add(self, handler: Handler) -> None:
        for other in self._handlers:
            if other.group == handler.group:
                check_handlers(other, handler)
        for pipeline in self._pipelines:
            check_pipeline(pipeline, handler)
        self._check_middleware_around(handler)
        self._handlers.append(handler)

    def _add_pipeline(self, pipeline: Pipeline) -> None:
        others: list[Handler | Pipeline] = [*self._handlers, *self._pipelines]
        for other in others:
            check_pipeline(pipeline, other)
        self._pipelines.append(pipeline)


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    parameters = inspect.signature(App).parameters.values()
    known = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    refuse_unknown(given, known, of="App")
