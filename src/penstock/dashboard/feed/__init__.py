"""One feed for all pages: snapshots and changes of what connected pages look at, and of nothing else."""
