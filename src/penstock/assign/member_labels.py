"""What to call members where people read: ids are long, and mostly made of random digits."""

from collections import Counter

from penstock.assign.model import Group, Member

_RANDOM_DIGITS = 6
_UUID = 36


def labels(group: Group) -> dict[str, str]:
    """By id: the static id, the client id with as much of the id as tells it from others, or the id itself."""
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
    # Both protocols end in a random UUID; the classic one has the client id before it.
    return f"{member.client}-{member.id[-_UUID:][:_RANDOM_DIGITS]}"
