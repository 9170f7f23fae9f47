"""Which resources need which: the order in which they are made, and what cannot work."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from penstock.app.resources.resource import Resource
from penstock.errors import ConfigError

# A resource may take what lives as long as itself, or longer.
_LIFETIMES = {"process": 2, "worker": 1, "partition": 0}


def needed_by(who: str, names: Iterable[str], resources: Mapping[str, Resource]) -> dict[str, Resource]:
    """Return the resources of these names and all that those need, in the order in which they can be made."""
    found: dict[str, Resource] = {}
    for name in names:
        if name not in resources:
            raise _missing(who, name, resources)
        for each in (*needed_by(f"Resource {name}", resources[name].needs, resources).values(), resources[name]):
            found.setdefault(each.name, each)
    return found


def check_resources(resources: Mapping[str, Resource], *, complete: bool = False) -> None:
    """Refuse resources that need each other in a circle, or one that lives shorter.

    ``complete``: also refuse a parameter that is the name of no resource. Before the app starts, one may follow.
    """
    for each in resources.values():
        _check_circle([each], resources)
        for name in each.needs:
            if name in resources:
                _check_lifetimes(each, resources[name])
            elif complete:
                raise _missing(f"Resource {each.name}", name, resources)


def _check_circle(path: Sequence[Resource], resources: Mapping[str, Resource]) -> None:
    for name in path[-1].needs:
        if name == path[0].name:
            circle = " -> ".join([*(each.name for each in path), name])
            raise ConfigError(
                f"Resource {path[-1].name} takes {name}, which itself needs {path[-1].name}: {circle}."
                if len(path) > 1
                else f"Resource {name} takes itself: its parameter {name} has its own name.",
                hint="Break the circle, for example with a third resource that both take.",
            )
        if name in resources and name not in [each.name for each in path]:
            _check_circle([*path, resources[name]], resources)


def _check_lifetimes(resource: Resource, needed: Resource) -> None:
    if _LIFETIMES[needed.scope] < _LIFETIMES[resource.scope]:
        raise ConfigError(
            f"Resource {resource.name} (scope={resource.scope!r}) takes {needed.name} (scope={needed.scope!r}), which "
            "is closed before it.",
            hint=f'Declare {resource.name} with scope="{needed.scope}", or {needed.name} with a longer one.',
        )
    if (resource.scope, needed.scope) == ("partition", "worker"):
        raise ConfigError(
            f'Resource {resource.name} (scope="partition") takes {needed.name} (scope="worker"), but several workers '
            "use the resource of one partition.",
            hint=f'Declare {needed.name} with scope="process" or scope="partition".',
        )
    if needed.is_async and not resource.is_async:
        raise ConfigError(
            f"Resource {resource.name} takes {needed.name}, which is async and belongs to an event loop.",
            hint=f"Declare {resource.name} with async def.",
        )


def _missing(who: str, name: str, resources: Mapping[str, Resource]) -> ConfigError:
    nearest = get_close_matches(name, resources, n=1)
    meant = f"Did you mean {nearest[0]}? " if nearest else ""
    return ConfigError(
        f"{who} takes {name}, but the app has no resource of this name.",
        hint=f"{meant}Declare it: @app.resource above def {name}(). Only a handler's first parameter gets the value.",
    )
