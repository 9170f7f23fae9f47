"""Makes reports for many tenants, fairly: `penstock run reports:app`.

The keys are such as `acme:17`: what stands before the colon is the tenant.
"""

from dataclasses import dataclass

from penstock import App, Rate, by

app = App("tenants")

TENANT = by.key(before=":")


@dataclass
class Request:
    pages: int


@dataclass
class Report:
    tenant: str
    pages: int


@app.consume(
    "report-requests",
    to="reports",
    order="key",
    concurrency=4,
    fair_by=TENANT,  # tenants take turns, so one with many requests does not delay the others
    rate=Rate(50, per="1s", by=TENANT),  # no tenant gets more than this, even if nobody else has requests
)
def report(request: Request, key: str) -> Report:
    return Report(key.partition(":")[0], request.pages)
