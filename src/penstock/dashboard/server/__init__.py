"""The web server of the dashboard, and what keeps it safe."""

from penstock.dashboard.server.launch_file import opened_in_browser
from penstock.dashboard.server.web_server import DashboardOptions, serve_dashboard

__all__ = ["DashboardOptions", "opened_in_browser", "serve_dashboard"]
