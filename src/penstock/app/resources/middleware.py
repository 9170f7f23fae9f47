"""Middleware: the user's functions around every attempt of handlers, and what they call to go on."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.app.resources.resource import needed_names
from penstock.app.signature import called, function_name
from penstock.errors import ConfigError, HandlerBug

_FORMS = "Write @app.around above def NAME(record, call), or async def for async handlers; it ends with return call()."
# The record and the call.
_OWN_PARAMETERS = 2
_NOT_CALLED = object()


@dataclass(frozen=True)
class Middleware:
    """``handlers`` are functions or names of handlers; None stands for all. ``needs`` are names of resources."""

    function: Callable[..., Any]
    is_async: bool
    needs: tuple[str, ...] = ()
    handlers: tuple[Callable[..., Any] | str, ...] | None = None

    @property
    def name(self) -> str:
        return function_name(self.function)

    def is_around(self, handler: str, function: Callable[..., Any]) -> bool:
        return self.handlers is None or any(each in (handler, function) for each in self.handlers)

    def check_mix(self, handler: str, *, is_async: bool) -> None:
        """Refuse ``async def`` around ``def``, which cannot await, and ``def`` around ``async def``."""
        if self.is_async == is_async:
            return
        mine, theirs = ("async def", "def") if self.is_async else ("def", "async def")
        raise ConfigError(
            f"Middleware {self.name} is {mine}, and handler {handler}, which it is around, is {theirs}.",
            hint=f"Write one middleware for each kind, and name its handlers: @app.around(handlers=[{handler}]).",
        )


def read_middleware(function: Any, handlers: Any) -> Middleware:
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"@app.around got {function!r}, which is not a function.", hint=_FORMS)
    name, inner = function_name(function), called(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ConfigError(f"Middleware {name} is a generator, which cannot call the handler.", hint=_FORMS)
    try:
        needed = needed_names(function, f"Middleware {name}", after=_OWN_PARAMETERS)
        inspect.signature(function).bind(None, None, **dict.fromkeys(needed))
    except TypeError as error:
        raise ConfigError(
            f"@app.around calls {name} with the record and the call, which it does not accept: {error}.", hint=_FORMS
        ) from error
    return Middleware(function, inspect.iscoroutinefunction(inner), needed, _checked_handlers(name, handlers))


def _checked_handlers(name: str, handlers: Any) -> tuple[Callable[..., Any] | str, ...] | None:
    if handlers is None:
        return None
    hint = "Write @app.around(handlers=[create, cancel]), with handler functions or their names."
    if isinstance(handlers, str) or not isinstance(handlers, Sequence) or not handlers:
        raise ConfigError(f"Middleware {name}: handlers={handlers!r} is not a list of handlers.", hint=hint)
    for each in handlers:
        if not (callable(each) or isinstance(each, str)):
            raise ConfigError(f"Middleware {name}: handlers= has {each!r}, which is not a handler.", hint=hint)
    return tuple(handlers)


class Call:
    """The rest of one attempt: calling it runs the next middleware, or the handler, and returns what that returns.

    ``call()`` passes the handler's arguments on. ``call(order=other)`` replaces those that are named. Each layer has a
    class of its own, which knows what it calls and ``_names``: one object is made for every record.
    """

    __slots__ = ("_given", "returned")
    _names: Sequence[str] = ()
    _given: Any
    returned: Any

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What the handler gets, by the names of its parameters, without its resources."""
        # The record may follow, which the handler does not take.
        return dict(zip(self._names, self._arguments, strict=False))

    @property
    def _arguments(self) -> tuple[Any, ...]:
        given: tuple[Any, ...] = self._given
        return given

    def _changed(self, changes: Mapping[str, Any]) -> list[Any]:
        given = [*self._arguments]
        for name, value in changes.items():
            if name not in self._names:
                raise HandlerBug(f"a middleware changed {name}, but the handler takes ({', '.join(self._names)})")
            given[self._names.index(name)] = value
        return given


class OneArgumentCall(Call):
    """For a handler that takes only the value or only the record, as most do: ``_given`` is not in a tuple."""

    __slots__ = ()

    @property
    def _arguments(self) -> tuple[Any, ...]:
        return (self._given,)


# The layers below run for every record. So they make their call without a constructor, which would be a call more, and
# those for one argument repeat what the general ones do, without packing and unpacking arguments.


def layer(
    middleware: Callable[..., Any],
    name: str,
    inner: Callable[..., Any],
    names: Sequence[str],
    record_index: int,
    *,
    drops_record: bool = False,
) -> Callable[..., Any]:
    """Return a function that calls the middleware around ``inner``.

    It takes what ``inner`` takes; with ``drops_record`` it takes the record after that, which ``inner`` does not take.
    """
    if len(names) == 1 and (drops_record or record_index == 0):
        return _one_argument_layer(middleware, name, inner, names, takes_value=drops_record)
    end = -1 if drops_record else None

    class LayerCall(Call):
        __slots__ = ()
        _names = names

        def __call__(self, **changes: Any) -> Any:
            self.returned = None  # also if the handler raises: then the middleware decides
            self.returned = result = inner(*(self._changed(changes) if changes else self._given))
            return result

    def around(*given: Any) -> Any:
        call = LayerCall()
        call._given, call.returned = given[:end], _NOT_CALLED  # noqa: SLF001
        result = middleware(given[record_index], call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    return around


def _one_argument_layer(
    middleware: Callable[..., Any], name: str, inner: Callable[..., Any], names: Sequence[str], *, takes_value: bool
) -> Callable[..., Any]:
    class OneArgumentLayerCall(OneArgumentCall):
        __slots__ = ()
        _names = names

        def __call__(self, **changes: Any) -> Any:
            self.returned = None
            self.returned = result = inner(self._changed(changes)[0] if changes else self._given)
            return result

    def around_value(value: Any, record: Any) -> Any:
        call = OneArgumentLayerCall()
        call._given, call.returned = value, _NOT_CALLED  # noqa: SLF001
        result = middleware(record, call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    def around_record(record: Any) -> Any:
        call = OneArgumentLayerCall()
        call._given, call.returned = record, _NOT_CALLED  # noqa: SLF001
        result = middleware(record, call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    return around_value if takes_value else around_record


def async_layer(
    middleware: Callable[..., Any],
    name: str,
    inner: Callable[..., Any],
    names: Sequence[str],
    record_index: int,
    *,
    drops_record: bool = False,
) -> Callable[..., Any]:
    """Like ``layer`` for ``async def``: middleware writes ``await call()``."""
    if len(names) == 1 and (drops_record or record_index == 0):
        return _one_argument_async_layer(middleware, name, inner, names, takes_value=drops_record)
    end = -1 if drops_record else None

    class AsyncLayerCall(Call):
        __slots__ = ()
        _names = names

        async def __call__(self, **changes: Any) -> Any:
            self.returned = None
            self.returned = result = await inner(*(self._changed(changes) if changes else self._given))
            return result

    async def around(*given: Any) -> Any:
        call = AsyncLayerCall()
        call._given, call.returned = given[:end], _NOT_CALLED  # noqa: SLF001
        result = await middleware(given[record_index], call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    return around


def _one_argument_async_layer(
    middleware: Callable[..., Any], name: str, inner: Callable[..., Any], names: Sequence[str], *, takes_value: bool
) -> Callable[..., Any]:
    class OneArgumentAsyncLayerCall(OneArgumentCall):
        __slots__ = ()
        _names = names

        async def __call__(self, **changes: Any) -> Any:
            self.returned = None
            self.returned = result = await inner(self._changed(changes)[0] if changes else self._given)
            return result

    async def around_value(value: Any, record: Any) -> Any:
        call = OneArgumentAsyncLayerCall()
        call._given, call.returned = value, _NOT_CALLED  # noqa: SLF001
        result = await middleware(record, call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    async def around_record(record: Any) -> Any:
        call = OneArgumentAsyncLayerCall()
        call._given, call.returned = record, _NOT_CALLED  # noqa: SLF001
        result = await middleware(record, call)
        if result is None and call.returned is not None:
            raise _nothing_returned(name, call)
        return result

    return around_value if takes_value else around_record


def _nothing_returned(name: str, call: Call) -> HandlerBug:
    if call.returned is _NOT_CALLED:
        return HandlerBug(
            f"middleware {name} did not run the handler, and returned nothing; return the result of call(), or raise "
            "Skip to leave the record out"
        )
    return HandlerBug(
        f"middleware {name} returned nothing, but the handler returned {type(call.returned).__name__}; return the "
        "result of call(), or raise Skip to drop it"
    )
