"""The pages of the dashboard, in the order of the navigation. To add one, see docs/internals/dashboard.md."""

from penstock.dashboard.pages import (
    app_page,
    group_page,
    letters_page,
    live_app_page,
    overview_page,
    rebalances_page,
    records_page,
    spark_page,
    topics_page,
    whatif_page,
)
from penstock.dashboard.pages.page_contract import DashboardPage

PAGES: tuple[DashboardPage, ...] = (
    overview_page.PAGE,
    group_page.PAGE,
    app_page.PAGE,
    live_app_page.PAGE,
    rebalances_page.PAGE,
    whatif_page.PAGE,
    letters_page.PAGE,
    topics_page.PAGE,
    topics_page.TOPIC_PAGE,
    records_page.PAGE,
    spark_page.PAGE,
)
