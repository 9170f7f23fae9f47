"""A real Kafka, a real Spark, one app on both engines, and a check that they agree.

This module imports nothing: Spark's workers import ``penstock.demo.shop`` and must not wait for more.
"""
