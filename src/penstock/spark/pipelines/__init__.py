"""DataFrame pipelines: the user's Spark code between our source and our sinks."""
