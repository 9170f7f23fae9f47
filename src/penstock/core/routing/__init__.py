"""Which records a route takes: conditions on headers and keys, and what happens to a record that no route takes.

Pure rules, without user code. ``app/routing`` has the handlers of a route group and their attempts.
"""
