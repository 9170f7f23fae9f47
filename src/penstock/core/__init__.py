"""The rules, free of threads, clocks and I/O; both engines use the same ones."""
