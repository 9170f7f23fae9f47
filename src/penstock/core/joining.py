"""What a member that has no assignment yet waits for, in words."""

# Of a group of the classic protocol, and of the new one, that is between two assignments.
_WAITS_FOR_MEMBERS = frozenset({"PreparingRebalance", "CompletingRebalance"})
_MOVES_PARTITIONS = frozenset({"Assigning", "Reconciling"})


def why_joining_takes(group: str, state: str, *, others: int, waited: float, session: float) -> str | None:
    """A sentence for people; None where nobody else is waited for.

    ``others`` are the members that the broker counts besides ours. The session of one that was killed began before we
    joined, so it ends at the latest when we have waited for a whole one.
    """
    if others < 1 or state not in _WAITS_FOR_MEMBERS | _MOVES_PARTITIONS:
        return None
    counted = "1 other member" if others == 1 else f"{others} other members"
    waits = f"Joining group {group!r}: the broker counts {counted}"
    if waited >= session:
        return (
            f"{waits} and has waited {waited:.0f} s, longer than the session timeout ({session:g} s). A living member "
            f"finishes what it has in progress first: see `penstock groups describe {group}`."
        )
    return (
        f"{waits}. One that was killed without leaving is dropped after its session timeout (session.timeout.ms, "
        f"{session:g} s), at most {session - waited:.0f} s from now; a living one first finishes what is in progress."
    )
