"""The dispatcher thread: the only owner of partition state. It has one inbox (``thread_messages.py``).

Its parts: partition lifecycle, commit schedule, failed records, stalled workers, manual acknowledgement.
"""
