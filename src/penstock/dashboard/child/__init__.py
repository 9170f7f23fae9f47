"""The child process that reads what pages show. The web server and ``penstock top`` have no Kafka client."""
