"""Operations on any cluster: lag and offsets of groups, dead letters, topics, and metrics of a running app."""
