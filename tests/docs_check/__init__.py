"""Runs the commands of README.md and docs/*.md as a reader would; ``tests/integration/docs`` uses it."""
