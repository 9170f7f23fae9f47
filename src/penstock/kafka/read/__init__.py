"""Reading records outside any group: whole topics, ranges, single offsets, and ``__consumer_offsets``.

Nothing here commits.
"""
