"""Fair turns: who waits for whom, without Kafka."""

from reports import app

from penstock.testing import Bench


def fill(bench: Bench, tenant: str, count: int) -> None:
    for number in range(count):
        bench.produce("report-requests", {"pages": number}, key=f"{tenant}:{number}")


def tenants_in_order(bench: Bench) -> list[str]:
    bench.run_until_idle()
    return [report.tenant for report in bench.outputs("reports")]


def test_a_tenant_with_many_requests_delays_nobody() -> None:
    bench = Bench(app)
    fill(bench, "big", 300)
    fill(bench, "small", 5)
    order = tenants_in_order(bench)
    assert len(order) == 305
    assert max(place for place, tenant in enumerate(order) if tenant == "small") < 40


def test_gold_has_three_turns() -> None:
    bench = Bench(app)
    for tenant in ("big", "gold"):
        fill(bench, tenant, 100)
    assert 60 <= tenants_in_order(bench)[:100].count("gold") <= 90
