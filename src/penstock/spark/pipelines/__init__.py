"""DataFrame pipelines: the user's Spark code between Penstock's Kafka source and its sinks."""
