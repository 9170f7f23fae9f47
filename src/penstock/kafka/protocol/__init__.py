"""Requests of Kafka's protocol that kafka-python does not have, in the form in which it reads its own."""
