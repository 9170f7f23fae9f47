"""What dispatches the records of one running handler, on either engine: its rules, its limits, and what it reports."""
