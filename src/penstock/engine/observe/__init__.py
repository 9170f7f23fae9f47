"""What a running member reports: events, health, metrics, rebalances, and answers to ``app.progress()``.

Nothing here changes what is consumed.
"""
