"""Pictures of every page of the dashboard, for the docs: ``make screenshots``."""
