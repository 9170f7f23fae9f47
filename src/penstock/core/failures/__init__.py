"""What happens when an attempt fails: outcomes, retries, retry topics, dead letters, breakers and restarts.

Pure rules, and the headers that failed records carry. Both engines use them.
"""
