"""An assignor of our own: members of a zone get the partitions of that zone. Run it with `penstock run zones:app`.

Partition n belongs to zone n % 2. A member names its zone with the option `rack`, such as
`--set handlers.count.rack=zone-1`.
"""

from penstock import App
from penstock.assign import Assignment, Group

ZONES = 2


class ByZone:
    """Each partition goes to a member of its zone if there is one, and there to the one with the fewest partitions."""

    name = "by-zone"

    def assign(self, group: Group) -> Assignment:
        shares: dict[str, list[tuple[str, int]]] = {member.id: [] for member in group.members}
        for topic, number in group.topic_partitions():
            readers = [member for member in group.members if topic in member.topics]
            near = [member for member in readers if member.rack == f"zone-{number % ZONES}"]
            chosen = min(near or readers, key=lambda member: (len(shares[member.id]), member.id))
            shares[chosen.id].append((topic, number))
        return Assignment(shares)


app = App("zones")


@app.consume("measurements", assignor=ByZone(), order="key")
def count(value: bytes) -> None:
    """Handle one measurement."""
