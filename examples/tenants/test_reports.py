"""Fair turns and rates, without Kafka and with a clock that the test moves."""

from collections import Counter

from reports import app

from penstock.testing import Bench


def fill(bench: Bench, tenant: str, count: int) -> None:
    for number in range(count):
        bench.produce("report-requests", {"pages": number}, key=f"{tenant}:{number}")


def done(bench: Bench) -> Counter[str]:
    return Counter(report.tenant for report in bench.outputs("reports"))


def test_a_tenant_with_many_requests_keeps_its_rate_and_delays_nobody() -> None:
    bench = Bench(app)
    fill(bench, "big", 300)
    fill(bench, "small", 5)
    bench.run_until_idle()
    assert done(bench) == {"big": 5, "small": 5}, "five at once, and then fifty a second"
    bench.advance("1s")
    assert done(bench) == {"big": 55, "small": 5}
    bench.advance("5s")
    assert bench.lag("report-requests") == 0
