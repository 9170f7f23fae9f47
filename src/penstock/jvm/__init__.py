"""Java and the jars it runs: what the embedded Kafka and the Spark engine share."""
