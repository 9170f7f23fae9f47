"""Reads and changes a cluster: topics, log bounds, groups, offsets; and finds out why a broker does not answer.

Nothing here joins a group.
"""
