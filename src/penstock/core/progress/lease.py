"""How long after its last poll a member may still assume that it owns its partitions.

A broker fences the commits of a member that it has removed from the group, but it cannot stop that member's handlers.
A process that was suspended for longer than its session timeout wakes up with records that another member owns by then,
and learns of that only later. So records start only while the last poll is younger than the session timeout minus one
heartbeat interval (a heartbeat may have been due just before that poll). After a longer pause, no record starts until
the broker confirms the membership.
"""

import math


class Lease:
    """The fetcher renews it with every poll. Code that starts a record checks ``until`` first."""

    __slots__ = ("seconds", "until")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.until = math.inf

    def renew(self, now: float) -> bool:
        """A poll succeeded. Returns False if it came too late; the lease then stays expired until ``restore``."""
        if now > self.until:
            return False
        self.until = now + self.seconds
        return True

    def restore(self, now: float) -> None:
        """The broker has confirmed the membership, or the member has joined again."""
        self.until = now + self.seconds


# For members whose partitions no broker can reassign. The testing kit revokes partitions explicitly.
FOREVER = Lease(math.inf)
