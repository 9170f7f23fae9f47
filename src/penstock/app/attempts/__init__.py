"""One attempt at a record: decode it, call the handler with its time limit, and return the outcome.

Workers of both engines and of the testing kit use this package. A ``Work`` is what one worker gets.
"""
