"""``@app.resource`` and ``@app.around``, and which handler gets what of them when the app starts."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, overload

from penstock.app.handler import Handler
from penstock.app.resources import Resource, Scope, check_resources, needed_by, read_resource
from penstock.app.resources.middleware import Middleware, read_middleware
from penstock.app.resources.wiring import Wiring
from penstock.app.routing.route_group import with_route_groups
from penstock.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])


class ResourceMethods:
    """Base of ``App``: the decorators that declare resources and middleware."""

    name: str
    _handlers: list[Handler]

    def __init__(self) -> None:
        self._resources: dict[str, Resource] = {}
        self._middleware: list[Middleware] = []

    @overload
    def resource(self, function: F, /) -> F: ...
    @overload
    def resource(self, /, *, scope: Scope = "process") -> Callable[[F], F]: ...
    def resource(self, function: Any = None, /, *, scope: Scope = "process") -> Any:
        """Declare a function that makes what handlers need; a parameter of its name gets it.

        The function is ``def`` or ``async def``, and returns the resource or yields it once; what comes after the yield
        closes it. Its own parameters are names of other resources.

        Args:
            function: The function, where the decorator has no arguments.
            scope: ``"process"`` makes it once before anything is consumed, ``"worker"`` once for each worker (thread,
                event loop or process), ``"partition"`` at the first record of each partition, until that is revoked.
        """

        def declare(function: F) -> F:
            found = read_resource(function, scope)
            if found.name in self._resources:
                raise ConfigError(
                    f"App {self.name!r} has two resources called {found.name}.", hint="Rename one of the functions."
                )
            check_resources({**self._resources, found.name: found})
            self._resources[found.name] = found
            return function

        return declare if function is None else declare(function)

    @overload
    def around(self, function: F, /) -> F: ...
    @overload
    def around(self, /, *, handlers: Sequence[Callable[..., Any] | str] | None = None) -> Callable[[F], F]: ...
    def around(self, function: Any = None, /, *, handlers: Any = None) -> Any:
        """Declare a function around every attempt of every handler, in order of declaration: the first is outermost.

        It gets the record (with ``batch=`` the list of records) and a ``call``, which runs the rest of the attempt.
        ``def`` is for ``def`` handlers, ``async def`` for ``async def`` handlers. Further parameters are resources.

        Args:
            function: The function, where the decorator has no arguments.
            handlers: The handlers that it is around, as functions or names; all by default.
        """

        def declare(function: F) -> F:
            found = read_middleware(function, handlers)
            for each in self._handlers:
                if found.is_around(each.name, each.function):
                    found.check_mix(each.name, is_async=each.signature.is_async)
            self._middleware.append(found)
            return function

        return declare if function is None else declare(function)

    def wired_handlers(self, given: Mapping[str, Any] | None = None) -> list[Handler]:
        """For engines: the handlers with all the resources and middleware that they need, which nobody has made yet.

        ``given`` has values to use instead of resources. Raises an error about what is missing or cannot work.
        """
        given = given or {}
        for name in given:
            if name not in self._resources:
                raise ConfigError(
                    f"App {self.name!r} has no resource called {name}.",
                    hint=f"It has {', '.join(self._resources) or 'none'}.",
                )
        resources = {
            name: Resource(name, each.function) if name in given else each for name, each in self._resources.items()
        }
        check_resources(resources, complete=True)
        for middleware in self._middleware:
            self._check_names(middleware)
        return [*with_route_groups(self._wired(handler, resources, given) for handler in self._handlers)]

    @property
    def functions_around_handlers(self) -> list[Callable[..., Any]]:
        """The functions of all resources and middleware, which other processes must be able to import."""
        resources = [each.function for each in self._resources.values()]
        return [*resources, *(each.function for each in self._middleware)]

    def _wired(self, handler: Handler, resources: Mapping[str, Resource], given: Mapping[str, Any]) -> Handler:
        around = [each for each in self._middleware if each.is_around(handler.name, handler.function)]
        who = f"Handler {handler.name}"
        needed = needed_by(who, handler.signature.resources, resources)
        for each in around:
            each.check_mix(handler.name, is_async=handler.signature.is_async)
            for_middleware = needed_by(f"Middleware {each.name}", each.needs, resources)
            _refuse_partitions(each, for_middleware)
            needed |= for_middleware
        _check_names_of_parts(handler, resources)
        for resource in needed.values():
            _check_resource(handler, resource)
        if not (needed or around):
            return handler
        # A function may name its handlers, which another process does not need to know.
        plain = tuple(Middleware(each.function, each.is_async, each.needs) for each in around)
        values = {name: value for name, value in given.items() if name in needed}
        return handler.wired(Wiring(tuple(needed.values()), plain, values))

    def _check_names(self, middleware: Middleware) -> None:
        for each in middleware.handlers or ():
            if not any(each in (handler.name, handler.function) for handler in self._handlers):
                known = ", ".join(handler.name for handler in self._handlers)
                name = each if isinstance(each, str) else getattr(each, "__name__", repr(each))
                raise ConfigError(
                    f"Middleware {middleware.name}: handlers= names {name}, which is not a handler of app "
                    f"{self.name!r}.",
                    hint=f"Its handlers are {known}.",
                )

    def _check_middleware_around(self, handler: Handler) -> None:
        for each in self._middleware:
            if each.is_around(handler.name, handler.function):
                each.check_mix(handler.name, is_async=handler.signature.is_async)

    def take_resources_of(self, other: Self) -> None:
        self._resources = {**other._resources}
        self._middleware = [*other._middleware]


def _refuse_partitions(middleware: Middleware, needed: Mapping[str, Resource]) -> None:
    for each in needed.values():
        if each.scope == "partition":
            raise ConfigError(
                f'Middleware {middleware.name} takes {each.name}, which has scope="partition".',
                hint="Take it in the handler; the middleware finds the partition in its record.",
            )


def _check_names_of_parts(handler: Handler, resources: Mapping[str, Resource]) -> None:
    """Refuse a parameter that looks like a resource and does not get it."""
    signature = handler.signature
    if signature.names and signature.names[0] in resources and signature.parts[0] == "value":
        raise ConfigError(
            f"Handler {handler.name}: its first parameter {signature.names[0]} gets the value, and is also named like "
            "a resource.",
            hint="Put the parameter for the value, or record: Record, before it; or rename it.",
        )
    if isinstance(handler.function, partial):  # an argument that it passes is a default here, and meant to be used
        return
    for name, each in inspect.signature(handler.function).parameters.items():
        if name in resources and each.default is not each.empty:
            raise ConfigError(
                f"Handler {handler.name}: its parameter {name} is named like a resource, but has a default.",
                hint="Remove the default, so that it gets the resource; or rename it.",
            )


def _check_resource(handler: Handler, resource: Resource) -> None:
    if resource.is_async and not handler.signature.is_async:
        raise ConfigError(
            f"Handler {handler.name} needs {resource.name}, an async resource, which belongs to an event loop, but the "
            "handler is def.",
            hint=f"Write the handler with async def, or the resource {resource.name} with def.",
        )
    if resource.scope != "partition":
        return
    reasons = {
        'workers="process": several processes share the records of a partition': handler.workers == "process",
        'mode="share": members of a share group own no partitions': handler.is_shared,
        "batch=: a batch may have records of several partitions": handler.batch is not None,
    }
    for reason, is_so in reasons.items():
        if is_so:
            raise ConfigError(
                f'Handler {handler.name} needs {resource.name} (scope="partition"), and has {reason}.',
                hint=f'Leave that option out, or declare {resource.name} with scope="worker".',
            )
