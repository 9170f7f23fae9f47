"""The driver's side of handlers on Spark: plans slices, runs them as Spark jobs, and commits what they finished."""
