"""The function that an attempt calls: the handler's own, with its resources passed and its middleware around it.

It is put together once, when the attempt function is built. A handler without resources and middleware stays as it is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any

from penstock.app.attempts.handler_outputs import collecting
from penstock.app.handler import Handler
from penstock.app.resources import AsyncPartitionResources, PartitionResources
from penstock.app.resources.middleware import async_layer, layer
from penstock.errors import StateError

_Function = Callable[..., Any]


def called_handler(handler: Handler) -> Handler:
    """Return the handler whose function takes only parts of the record, and calls everything that belongs to it.

    A function that yields has ended when middleware gets its outputs as a list.
    """
    wiring, signature, own = handler.wiring, handler.signature, collecting(handler)
    if wiring.is_plain:
        if signature.resources:
            raise StateError(
                f"Handler {handler.name} takes {signature.resources[0]}, and no engine has made its resources.",
                hint="This is a bug in Penstock: please report it.",
            )
        return handler if own is handler.function else handler.calling(own, signature)
    names = tuple(name for name in signature.names if name not in signature.resources)
    partition_names = [
        each.name for each in wiring.resources if each.scope == "partition" and each.name not in wiring.supplied
    ]
    fixed = {name: wiring.supplied[name] for name in signature.resources if name not in partition_names}
    bound = partial(_bound, own, signature.names)
    function = bound(fixed)
    if not (wiring.around or partition_names):
        return handler.calling(function, replace(signature, names=names, resources=()))
    # Middleware and the resources of partitions need the record, which the handler may not take.
    parts = signature.parts if "record" in signature.parts else (*signature.parts, "record")
    index = parts.index("record")
    taken = [name for name in signature.resources if name in partition_names]
    if wiring.partitions is not None and partition_names:
        function = _with_partition(
            lambda values: bound({**fixed, **{name: values[name] for name in taken}}),
            wiring.partitions,
            index,
            len(names),
        )
    # The innermost middleware drops a record that the handler does not take; those around it pass it on.
    drops_record = len(parts) > len(names) and not (wiring.partitions is not None and partition_names)
    if drops_record and not wiring.around:
        function = _without_last(function)
    make_layer = async_layer if signature.is_async else layer
    for each in reversed(wiring.around):
        needed = {name: wiring.supplied[name] for name in each.needs}
        function = make_layer(
            (_with_defaults(each.function, 2, needed) or partial(each.function, **needed)) if needed else each.function,
            each.name,
            function,
            names,
            index,
            drops_record=drops_record and each is wiring.around[-1],
        )
    return handler.calling(function, replace(signature, parts=parts, names=names, resources=()))


def _bound(function: _Function, names: Sequence[str], values: Mapping[str, Any]) -> _Function:
    """Return the function with these arguments passed; the others stay positional, in their order."""
    if not values:
        return function
    given = [name for name in names if name not in values]
    if list(names[: len(given)]) == given:
        last = {name: values[name] for name in names[len(given) :]}
        return _with_defaults(function, len(given), last) or partial(function, **last)
    slots = [(name in values, values[name] if name in values else given.index(name)) for name in names]
    return lambda *others: function(*[what if is_value else others[what] for is_value, what in slots])


def _with_defaults(function: _Function, taken: int, values: Mapping[str, Any]) -> _Function | None:
    """Return a copy of a function whose required parameters after the first ``taken`` have these values as defaults.

    Python passes defaults for nothing; a function or a partial around it would be a call more for every record. Returns
    None for what is not a plain ``def`` with these parameters, such as a callable object.
    """
    if not isinstance(function, FunctionType):
        return None
    code, own = function.__code__, function.__defaults__ or ()
    if code.co_varnames[taken : code.co_argcount - len(own)] != tuple(values):
        return None
    copied = FunctionType(code, function.__globals__, argdefs=(*values.values(), *own), closure=function.__closure__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(copied, function)


def _without_last(function: _Function) -> _Function:
    return lambda *given: function(*given[:-1])


def _with_partition(
    bound: Callable[[Mapping[str, Any]], _Function],
    partitions: PartitionResources | AsyncPartitionResources,
    index: int,
    count: int,
) -> _Function:
    """Return a function of ``count`` arguments and maybe the record; it passes the resources of its partition too."""
    if isinstance(partitions, PartitionResources):
        use = partitions.use

        def call(*given: Any) -> Any:
            record = given[index]
            with use((record.topic, record.partition)) as values:
                return bound(values)(*given[:count])

        return call
    use_async = partitions.use

    async def call_async(*given: Any) -> Any:
        record = given[index]
        async with use_async((record.topic, record.partition)) as values:
            return await bound(values)(*given[:count])

    return call_async
