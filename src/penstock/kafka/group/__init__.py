"""Self-managed group membership, without the membership of the Kafka client; and consumers of share groups.

Requests to the coordinator, heartbeats, the leader's assignment, and the byte formats that members exchange.
"""
