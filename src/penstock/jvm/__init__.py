"""Java and jars, which both the embedded Kafka and the Spark engine need."""
