"""Group membership on the fetcher thread: by the Kafka client (native) or by Penstock (self-managed).

Also what the members of one handler in one process must know about each other.
"""
