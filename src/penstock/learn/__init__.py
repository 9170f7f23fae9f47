"""The lessons of ``penstock learn``: each does something on a real Kafka and shows what it reads from it.

This module imports nothing: Spark's workers import ``penstock.learn.counting_app`` and must not wait for more.
"""
