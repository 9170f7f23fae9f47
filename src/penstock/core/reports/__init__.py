"""Data for reports: the closed list of events, counts, histograms and the phases of a rebalance.

Nothing here affects how records are processed.
"""
