"""The progress of a group: finished offsets, commit points, offset maps, leases, lag and resets.

Also the formats in which Kafka and its tools store progress.
"""
