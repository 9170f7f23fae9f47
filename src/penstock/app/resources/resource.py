"""``Resource``: a user's function that makes what handlers need, read and checked when it is declared."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from penstock.app.attempts.traceback_text import described
from penstock.app.signature import NOT_RESOURCES, called, function_name
from penstock.core.failures.outcome import error_name
from penstock.errors import CallbackError, ConfigError

Scope = Literal["process", "worker", "partition"]

_FORMS = "Write @app.resource above def or async def; it returns the resource, or yields it once and closes it after."


@dataclass(frozen=True)
class Resource:
    """``needs`` are its parameters: the names of other resources, which are made before it and closed after it."""

    name: str
    function: Callable[..., Any]
    scope: Scope = "process"
    needs: tuple[str, ...] = ()
    is_async: bool = False
    is_generator: bool = False


def read_resource(function: Any, scope: Any) -> Resource:
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"@app.resource got {function!r}, which is not a function.", hint=_FORMS)
    name, inner = function_name(function), called(function)
    if scope not in get_args(Scope):
        raise ConfigError(
            f"Resource {name}: scope={scope!r} does not exist.", hint='Use "process", "worker" or "partition".'
        )
    if not name.isidentifier():
        raise ConfigError(
            f"Resource {name} has a name that no parameter can have.", hint="Declare a function with def or async def."
        )
    if name in NOT_RESOURCES:
        raise ConfigError(
            f"Resource {name} has a name that handlers use for a part of the record.", hint="Rename the function."
        )
    return Resource(
        name,
        function,
        scope,
        needed_names(function, f"Resource {name}"),
        is_async=inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner),
        is_generator=inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner),
    )


def needed_names(function: Callable[..., Any], what: str, *, after: int = 0) -> tuple[str, ...]:
    """Return the parameters without a default from number ``after`` on: each is the name of a resource."""
    parameters = list(inspect.signature(function).parameters.values())[after:]
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for each in needed:
        if each.kind is each.POSITIONAL_ONLY:
            raise ConfigError(
                f"{what}: its parameter {each.name} is positional-only, and resources are passed by name.",
                hint="Remove the / from its parameters.",
            )
    return tuple(each.name for each in needed)


def resource_error(resource: Resource, error: BaseException, *, closing: bool = False) -> CallbackError:
    """Return the error that stops the app when making or closing a resource raised, with the user's traceback."""
    message, traceback = described(error)
    did = "raised while it was closed" if closing else "raised"
    problem = f"The resource {resource.name} {did} {error_name(type(error))}: {message}".rstrip(".")
    hint = (
        "The records that were handled are committed. Fix what comes after its yield."
        if closing
        else "Fix it and start the app again. No record was handled with it."
    )
    made = CallbackError(f"{problem}.", hint=hint, traceback=traceback)
    made.__cause__ = error
    return made


def wrong_yields(resource: Resource, *, many: bool) -> CallbackError:
    yields = "yields more than once" if many else "ended without a yield"
    return CallbackError(
        f"The resource {resource.name} {yields}.",
        hint="Yield the resource exactly once: what comes after the yield closes it.",
    )


def never_closed(what: str, seconds: float) -> CallbackError:
    """Return the error about a shutdown that was given up."""
    return CallbackError(
        f"{what} did not close within {seconds:g} s.",
        hint="Give the waits after its yield a time limit, or raise drain_timeout.",
    )
