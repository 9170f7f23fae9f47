"""What happens when an attempt fails: outcomes, retries, retry topics, dead letters, breakers and restarts.

Pure rules and the headers that they write; both engines follow them.
"""
