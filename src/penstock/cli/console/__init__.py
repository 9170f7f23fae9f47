"""What commands share at the terminal: output, tables, progress bars, questions and common flags.

All output goes through ``screen.py``, which makes foreign text safe and hides secrets.
"""
