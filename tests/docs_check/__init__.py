"""Runs what README.md and docs/*.md print, as a reader would: see ``tests/integration/docs``."""
