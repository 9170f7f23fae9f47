"""Facts for listeners: the closed list of events, counts, histograms and the phases of a rebalance.

Nothing here decides anything.
"""
