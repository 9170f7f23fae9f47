"""How long a member may take its partitions for its own.

A broker fences the commits of a member that it has given up, but not its handlers. A process that was stopped for
longer than its session wakes up with records that are somebody else's by now, and learns that only later. So records
start only while the last poll is younger than the session, less the heartbeat that may have been due before it; after a
longer pause, the broker is asked first.
"""

import math


class Lease:
    """The fetcher renews it with every poll; whoever starts a record looks at ``until`` first."""

    __slots__ = ("_seconds", "until")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.until = math.inf

    def renew(self, now: float) -> bool:
        """A poll succeeded. False if it came too late: then the lease is over until it is ``restored``."""
        if now > self.until:
            return False
        self.until = now + self._seconds
        return True

    def restore(self, now: float) -> None:
        """The broker has confirmed the membership, or a new one began."""
        self.until = now + self._seconds


# Where nobody can take the partitions away: the testing kit says itself when it does.
FOREVER = Lease(math.inf)
