"""The web server of the dashboard, and what keeps it safe."""

from penstock.dashboard.server.web_server import DashboardOptions, serve_dashboard

__all__ = ["DashboardOptions", "serve_dashboard"]
