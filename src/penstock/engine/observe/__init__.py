"""What a running member tells others: events, health, metrics, recorded rebalances, and answers to ``app.progress()``.

Nothing here changes what is consumed.
"""
