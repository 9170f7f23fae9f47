"""``Wiring``: which resources and middleware the calls of one handler need, and what of it was made already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.app.resources import AsyncPartitionResources, PartitionResources, Resource
from penstock.app.resources.middleware import Middleware


@dataclass(frozen=True)
class Wiring:
    """``resources`` are all that the handler and its middleware need, each after those that it needs itself."""

    resources: tuple[Resource, ...] = ()
    around: tuple[Middleware, ...] = ()
    supplied: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The values of resources that are made already. They stay in their process: no other process gets a handler that
    has some."""
    partitions: PartitionResources | AsyncPartitionResources | None = field(default=None, repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether the handler is called with nothing but the record."""
        return not (self.resources or self.around)

    @property
    def _missing(self) -> list[Resource]:
        return [each for each in self.resources if each.name not in self.supplied]

    @property
    def of_process(self) -> list[Resource]:
        """The resources to make once in this process. Those of ``async def`` are made on each event loop instead."""
        return [each for each in self._missing if each.scope == "process" and not each.is_async]

    @property
    def of_worker(self) -> list[Resource]:
        """All that is left for a worker to make: a thread, an event loop or a worker process."""
        return [each for each in self._missing if each.scope != "partition"]

    @property
    def of_partition(self) -> list[Resource]:
        return [each for each in self._missing if each.scope == "partition"]

    def with_values(self, values: Mapping[str, Any]) -> "Wiring":
        return replace(self, supplied={**self.supplied, **values})

    def with_values_of(self, other: "Wiring") -> "Wiring":
        """The same resources and middleware, with what the other has made."""
        return replace(self, supplied=other.supplied, partitions=other.partitions)


def union(parts: Sequence[Wiring]) -> Wiring:
    """For handlers that share workers: all that any of them needs, each resource still after those that it needs."""
    resources = {each.name: each for part in parts for each in part.resources}
    around = dict.fromkeys(each for part in parts for each in part.around)
    supplied = {name: value for part in parts for name, value in part.supplied.items()}
    return Wiring(tuple(resources.values()), tuple(around), supplied)


PLAIN = Wiring()
"""For handlers without resources and middleware."""
