"""Consumers, producers and transactions with the settings that the guarantees need.

``kafka_python.py`` is the only module that imports kafka-python's private parts.
"""
