"""Which records may run now: lanes, the schedule, the dispatcher's rules, back-pressure and batch sizes.

Rules take facts and return effects (``effects.py``); engines carry the effects out.
"""
