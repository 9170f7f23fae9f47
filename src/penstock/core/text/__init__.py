"""Text for people: durations, timestamps, plurals, suggestions for typos, and untrusted text made safe to print.

Nothing here depends on Kafka.
"""
