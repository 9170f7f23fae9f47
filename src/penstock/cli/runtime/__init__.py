"""What ``penstock run`` puts around a running app: its configuration, signals, logs, health and metrics.

Listeners to events belong here; the engines know nothing about the terminal.
"""
