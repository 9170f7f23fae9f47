"""The expression language of ``--where``: a checked part of Python syntax that Python never executes.

Parsing and limits are in ``expression.py``; the meaning of each operation is in ``evaluation.py``.
"""
