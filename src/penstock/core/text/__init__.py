"""Text for people: durations, timestamps, plurals, suggestions for typos, and foreign text made safe to print.

No Kafka in here.
"""
