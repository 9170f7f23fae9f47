"""Questions about a cluster and changes to it: topics, log bounds, groups, offsets, and why a broker does not answer.

Nothing here joins a group.
"""
