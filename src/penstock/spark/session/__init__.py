"""Spark sessions: where they run, their settings, their JVM, and how user code reaches executors.

Handlers and pipelines both use them.
"""
