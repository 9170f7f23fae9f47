"""The fetcher thread: the only thread that uses the Kafka consumer. It polls, pauses, seeks and commits.

It never waits for handlers.
"""
