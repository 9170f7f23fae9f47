"""What holds on every engine. Each file has one subject; the exceptions of each engine are below."""

from typing import Literal

from conformance.scenarios import exactly_once, ordering, outcomes, reset, resuming, routing  # declares them
from conformance.scenarios.declaring import SCENARIOS, Scenario

Engine = Literal["kit", "local", "self-managed", "spark"]

LEFT_OUT: dict[Engine, dict[Scenario, str]] = {
    "kit": {
        resuming.partitions_that_were_added_are_consumed_from_their_start: "a bench has the partitions it was given",
        exactly_once.outputs_of_a_run_that_broke_off_are_there_once: "a bench has no transactions",
        reset.a_reset_backwards_repeats_and_one_forwards_skips: "offsets of a bench are its own",
    },
    "local": {},
    "self-managed": {
        exactly_once.outputs_of_a_run_that_broke_off_are_there_once: "transactions need a native member",
    },
    "spark": {
        resuming.a_record_is_finished_when_it_is_acknowledged_and_not_before: 'commit="manual" is refused there',
        ordering.a_key_meets_the_partition_that_its_hash_says: "it is the producer of the scenario that is looked at",
    },
}
"""What an engine does not have, and why. Callbacks and retry topics have no scenario here."""


def scenarios_on(engine: Engine) -> list[Scenario]:
    return [play for play in SCENARIOS if play not in LEFT_OUT[engine]]


__all__ = ["LEFT_OUT", "SCENARIOS", "Engine", "Scenario", "outcomes", "routing", "scenarios_on"]
