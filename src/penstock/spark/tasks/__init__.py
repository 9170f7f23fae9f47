"""What runs in Spark's Python workers: a task reads its slice of a partition, handles its records and writes."""
