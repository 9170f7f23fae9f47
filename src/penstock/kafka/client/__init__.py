"""Consumers, producers and transactions with the settings that the guarantees need.

Only ``kafka_python.py`` imports kafka-python, and only ``kafka_python_connection.py`` connects with it.
"""
