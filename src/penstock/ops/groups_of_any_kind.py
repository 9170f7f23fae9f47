"""Groups of every kind that can be looked at: those of consumers, and share groups where kafka-python is installed."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.kafka.admin.cluster import Cluster
from penstock.kafka.admin.consumer_groups import Commit, GroupDescription, GroupListing, Groups

if TYPE_CHECKING:
    from penstock.kafka.admin.share_groups import ShareGroups


def share_groups(cluster: Cluster) -> "ShareGroups":
    """Raises what to install, or which setting is in the way."""
    from penstock.kafka.admin.share_groups import ShareGroups  # noqa: PLC0415 - it comes with an extra

    return ShareGroups(cluster)


def all_groups(cluster: Cluster) -> tuple[list[GroupListing], PenstockError | None]:
    """By name, and why share groups are not among them, if so."""
    found = Groups(cluster).of_consumers()
    try:
        with share_groups(cluster) as shared:
            found += shared.listed()
    except PenstockError as missing:
        return found, missing
    return sorted(found, key=lambda each: each.name), None


def describe(cluster: Cluster, names: Iterable[str]) -> dict[str, GroupDescription | PenstockError]:
    """A group that does not exist has the state Dead; so has a share group where those cannot be asked about."""
    found = Groups(cluster).describe(names)
    unknown = [name for name, each in found.items() if isinstance(each, GroupDescription) and not each.exists]
    if unknown:
        try:
            with share_groups(cluster) as shared:
                found |= shared.describe(unknown)
        except ConfigError:
            pass  # ``no_group`` says so, of a group that turns out to be one
    return found


def committed(
    cluster: Cluster, described: Mapping[str, GroupDescription | PenstockError]
) -> dict[str, Mapping[TopicPartition, Commit | None] | PenstockError]:
    """How far each of these groups is, by partition; None where that is not settled yet."""
    shared = {name for name, each in described.items() if isinstance(each, GroupDescription) and each.is_shared}
    found: dict[str, Mapping[TopicPartition, Commit | None] | PenstockError] = {
        **Groups(cluster).committed(name for name in described if name not in shared)
    }
    if shared:
        with share_groups(cluster) as asked:
            found |= asked.starts(shared)
    return found


def no_group(name: str, cluster: Cluster, *, hint: str = "`penstock groups ls` lists them.") -> StateError:
    """Why there is none to look at: a group of another kind goes by its name too."""
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
