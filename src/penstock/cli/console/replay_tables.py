"""The plan and the result of ``penstock dlq replay``."""

from typing import Any

from penstock.cli.console.screen import err, out
from penstock.cli.console.tables import print_table
from penstock.core.text.plurals import at_most, counted
from penstock.ops.replay import PARKED, ReplayPlan, Sent


def show_plan(topic: str, plan: ReplayPlan) -> None:
    rows = [(target, reason, f"{count:,}") for (target, reason), count in plan.going.most_common()]
    if plan.parked:
        rows.append((topic + PARKED, "came back too often", f"{plan.parked:,}"))
    if rows:
        print_table(("TO", "REASON", "LETTERS"), rows, right=("LETTERS",))
    left = {
        "they were replayed before": at_most(plan.replayed_before, "dead letter"),
        "the options did not select them": counted(plan.not_selected, "dead letter"),
        "their source topic is unknown or does not exist (use --to)": counted(plan.no_source, "dead letter"),
    }
    for why, count in left.items():
        if not count.startswith("0 "):
            err.print(f"Not replayed, because {why}: {count}.")
    if not rows:
        err.print("Nothing to replay.")


def show_sent(topic: str, plan: ReplayPlan, sent: Sent) -> None:
    going = plan.going.total()
    if going or not plan.parked:
        out.print(f"Replayed {sent.replayed:,} of {counted(going, 'dead letter')}.")
    if plan.parked:
        out.print(f"Parked {sent.parked:,} of {counted(plan.parked, 'dead letter')} in {topic}{PARKED}.")


def plan_json(plan: ReplayPlan, *, sent: Sent, executed: bool) -> dict[str, Any]:
    return {
        "executed": executed,
        "sent": sent.total,
        "sent_back": sent.replayed,
        "sent_to_parked": sent.parked,
        "going": [{"to": target, "reason": reason, "letters": count} for (target, reason), count in plan.going.items()],
        "parked": plan.parked,
        "replayed_before": plan.replayed_before,
        "not_chosen": plan.not_selected,
        "no_known_source": plan.no_source,
    }
