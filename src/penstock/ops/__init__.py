"""Operating it: any consumer group's lag and offsets, dead letters, topics."""
