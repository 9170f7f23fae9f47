"""The dispatcher thread: the only owner of partition state. It has one inbox (``thread_messages.py``).

Its parts: partition lifecycle, commit schedule, works in progress, failed records, manual acknowledgement, shutdown.
"""
