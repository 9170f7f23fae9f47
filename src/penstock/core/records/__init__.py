"""A Kafka record as handlers see it, where it came from, and which partition its key belongs to.

Hashes that must agree with Java live here too.
"""
