"""The dashboard: a local web page for the groups of a cluster, and for running apps.

``feed`` reads what connected pages look at and sends them what changed. ``pages`` has one module for each page,
``server`` the web server and its security, ``static`` what the browser loads.
"""

from penstock.dashboard.server import DashboardOptions, serve_dashboard

__all__ = ["DashboardOptions", "serve_dashboard"]
