"""Describes a group from a child process, because the admin client may abort its process meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription, Groups
from penstock.kafka.child_process import ChildProcess, Say

# For a child on a busy machine: it imports the client, connects, and waits for two answers.
_CHILD_SECONDS = 60.0


@dataclass(frozen=True)
class GroupAnswer:
    """``session_seconds`` is known only for groups of the consumer protocol, where it is a setting of the broker."""

    group: GroupDescription
    session_seconds: float | None


def describe_group(cluster: Cluster, group: str) -> GroupAnswer | None:
    """Return None if the broker does not answer, the child process dies, or the settings cannot be pickled."""
    child = ChildProcess(partial(_Describer, cluster.brokers, dict(cluster.settings)), name="The child process")
    try:
        answer: GroupAnswer = child.call("describe", group, seconds=_CHILD_SECONDS)
    except (PenstockError, OSError, RuntimeError):
        return None
    finally:
        child.close()
    return answer


class _Describer:
    """Lives in the child process."""

    def __init__(self, brokers: str, settings: Mapping[str, Any], _say: Say) -> None:
        self._cluster = Cluster(brokers, settings)

    def describe(self, group: str) -> GroupAnswer:
        groups = Groups(self._cluster)
        found = groups.describe([group])[group]
        if isinstance(found, PenstockError):
            raise found
        return GroupAnswer(found, groups.session_seconds(group) if found.type == "Consumer" else None)
