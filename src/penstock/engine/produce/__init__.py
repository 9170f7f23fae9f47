"""Produces outputs, dead letters and retry records.

``outbox.py`` waits for the broker's acknowledgements; with exactly-once, ``transactor.py`` replaces it.
"""
