"""Being a member of a group without the Kafka client's own membership, and consumers of share groups.

The coordinator's requests, the leader's assignment, and the bytes that members write for each other.
"""
