"""Consumer groups, and share groups if kafka-python is installed, in one list."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import CommittedOffset, GroupDescription, GroupListing, Groups

if TYPE_CHECKING:
    from penstock.kafka.admin.share_groups import ShareGroups


def share_groups(cluster: Cluster) -> "ShareGroups":
    """Raise a ConfigError that says what to install, or which setting kafka-python does not support."""
    from penstock.kafka.admin.share_groups import ShareGroups  # noqa: PLC0415 - needs an extra

    return ShareGroups(cluster)


def all_groups(cluster: Cluster) -> tuple[list[GroupListing], PenstockError | None]:
    """Return the groups sorted by name, and the reason if share groups are missing."""
    found = Groups(cluster).of_consumers()
    try:
        with share_groups(cluster) as shared:
            found += shared.listed()
    except PenstockError as missing:
        return found, missing
    return sorted(found, key=lambda each: each.name), None


def describe(cluster: Cluster, names: Iterable[str]) -> dict[str, GroupDescription | PenstockError]:
    """A missing group has the state Dead, and so has a share group if share groups cannot be described."""
    found = Groups(cluster).describe(names)
    unknown = [name for name, each in found.items() if isinstance(each, GroupDescription) and not each.exists]
    if unknown:
        try:
            with share_groups(cluster) as shared:
                found |= shared.describe(unknown)
        except ConfigError:
            pass  # ``no_group`` explains this if the group is a share group
    return found


def committed(
    cluster: Cluster, described: Mapping[str, GroupDescription | PenstockError]
) -> dict[str, Mapping[TopicPartition, CommittedOffset | None] | PenstockError]:
    """Return the commits of each group by partition; None for a partition of a share group without a start offset."""
    shared = {name for name, each in described.items() if isinstance(each, GroupDescription) and each.is_shared}
    found: dict[str, Mapping[TopicPartition, CommittedOffset | None] | PenstockError] = {
        **Groups(cluster).committed(name for name in described if name not in shared)
    }
    if shared:
        with share_groups(cluster) as asked:
            found |= asked.starts(shared)
    return found


def no_group(name: str, cluster: Cluster, *, hint: str = "`penstock groups ls` lists them.") -> StateError:
    """Return the error for a missing group. It says so if the name belongs to a group of another kind."""
    try:
        with share_groups(cluster) as shared:
            described, unasked = shared.describe([name])[name], None
    except PenstockError as error:
        described, unasked = None, error
    if isinstance(described, GroupDescription) and described.exists:
        return StateError(
            f"{name!r} is a share group, and this command works only with consumer groups.",
            hint="`penstock groups`, `penstock lag` and `penstock offsets` work with share groups too.",
        )
    if all(each.name != name for each in Groups(cluster).others()):
        near = get_close_matches(name, [each.name for each in Groups(cluster).of_consumers()], n=1)
        meant = f"Did you mean {near[0]!r}? " if near else ""
        return StateError(f"There is no group {name!r} at {cluster.brokers}.", hint=meant + hint)
    if unasked is not None:
        return StateError(
            f"{name!r} is not a consumer group. It may be a share group. {unasked.problem}",
            hint=unasked.hint,
        )
    return StateError(
        f"{name!r} is neither a consumer group nor a share group. Penstock knows only its name.",
        hint="Use Kafka's kafka-groups.sh or kafka-streams-groups.sh for this group.",
    )
