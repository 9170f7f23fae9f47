"""Describes a group from a child process.

librdkafka's admin client may abort its process ("Assertion `eonce->refcnt > 0' failed") if the group's coordinator dies
while it answers. A command may end that way, an app that consumes may not.
"""

import pickle
import subprocess
import sys
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import GroupDescription, Groups

# For a child on a busy machine: it imports the client, connects, and waits for two answers.
_CHILD_SECONDS = 60.0
_CHILD = f"from {__name__} import answer_parent; answer_parent()"


@dataclass(frozen=True)
class GroupAnswer:
    """``session_seconds`` is known only for groups of the consumer protocol, where it is a setting of the broker."""

    group: GroupDescription
    session_seconds: float | None


def describe_group(cluster: Cluster, group: str) -> GroupAnswer | None:
    """Return None if the broker does not answer, the child process dies, or the settings cannot be pickled."""
    try:
        question = pickle.dumps((cluster.brokers, dict(cluster.settings), group))
        done = subprocess.run(
            [sys.executable, "-P", "-c", _CHILD],
            input=question,
            capture_output=True,
            timeout=_CHILD_SECONDS,
            check=True,
            start_new_session=True,  # Ctrl+C in the terminal is for the app
        )
    except (OSError, subprocess.SubprocessError, pickle.PicklingError, AttributeError, TypeError):
        return None
    answer: GroupAnswer = pickle.loads(done.stdout)  # noqa: S301 - the child process has written it
    return answer


def _answer(brokers: str, settings: dict[str, object], group: str) -> GroupAnswer:
    groups = Groups(Cluster(brokers, settings))
    found = groups.describe([group])[group]
    if isinstance(found, PenstockError):
        raise found
    return GroupAnswer(found, groups.session_seconds(group) if found.type == "Consumer" else None)


def answer_parent() -> None:
    """Runs in the child process."""
    question = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent process has written it
    sys.stdout.buffer.write(pickle.dumps(_answer(*question)))
