"""What runs handlers: threads for ``def``, an event loop for ``async def``, and worker processes.

Workers report outcomes to the dispatcher and own no partition state.
"""
