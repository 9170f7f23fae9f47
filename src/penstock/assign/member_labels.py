"""Short names of members for people: member ids are long and consist mostly of random digits."""

from collections import Counter

from penstock.assign.model import Group, Member

_RANDOM_DIGITS = 6
_UUID = 36


def labels(group: Group) -> dict[str, str]:
    """The label of each member id: the static id, the client id (with a part of the member id if needed), or the id."""
    clients = Counter(member.client for member in group.members if member.static_id is None)
    wanted = {member.id: _label(member, alone=clients[member.client] == 1) for member in group.members}
    used = Counter(wanted.values())
    return {name: label if used[label] == 1 else name for name, label in wanted.items()}


def _label(member: Member, *, alone: bool) -> str:
    if member.static_id is not None:
        return member.static_id
    if not member.client:
        return member.id
    if alone:
        return member.client
    # In both protocols a member id ends in a random UUID; in the classic one it starts with the client id.
    return f"{member.client}-{member.id[-_UUID:][:_RANDOM_DIGITS]}"
