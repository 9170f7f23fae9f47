"""What ``penstock run`` adds to a running app: configuration, signals, logs, health and metrics.

Listeners to events belong here: the engines know nothing about the terminal.
"""
