"""Outputs, dead letters and retries on their way to the broker.

``outbox.py`` waits for acknowledgements; ``transactor.py`` takes its place with exactly-once.
"""
