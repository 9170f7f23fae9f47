"""Routes: several handlers that share the records of one member, each with its own condition ``when=``.

``core/routing`` has the pure conditions. ``routed_attempts`` has the functions that engines call.
"""
