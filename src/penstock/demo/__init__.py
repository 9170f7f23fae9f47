"""A real Kafka, a real Spark, one app on both engines, and a check that they agree.

Nothing is imported here: Spark's workers import ``penstock.demo.shop`` and should not wait for more.
"""
