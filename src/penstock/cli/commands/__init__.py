"""The commands of ``penstock``: one module for each, or for each group of them.

A module reads flags, calls ``ops`` or an engine, and prints the result. Nothing else imports a command.
"""
