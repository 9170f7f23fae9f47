"""What a user does with a running app: start, stop, wait, progress, commit, pause, set, and replays of a range."""
