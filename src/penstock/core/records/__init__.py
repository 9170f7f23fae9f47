"""A Kafka record as handlers see it, its source, and the partition that its key belongs to.

Also the hash functions that must give the same results as Java's.
"""
