"""Scenarios that every engine must pass, one subject in each file. The exceptions of each engine are below."""

from typing import Literal

# Importing a module declares its scenarios.
from conformance.scenarios import (
    exactly_once,
    ordering,
    outcomes,
    outputs,
    reset,
    resources,
    resuming,
    routing,
    times,
)
from conformance.scenarios.declaring import SCENARIOS, Scenario

Engine = Literal["kit", "local", "self-managed", "spark"]

LEFT_OUT: dict[Engine, dict[Scenario, str]] = {
    "kit": {
        resuming.partitions_that_were_added_are_consumed_from_their_start: "a bench cannot add partitions to a topic",
        exactly_once.outputs_of_a_run_that_broke_off_are_there_once: "a bench has no transactions",
        exactly_once.all_outputs_of_a_record_are_there_once_or_none_is: "a bench has no transactions",
        reset.a_reset_backwards_repeats_and_one_forwards_skips: "no other tool can set the offsets of a bench",
    },
    "local": {},
    "self-managed": {
        exactly_once.outputs_of_a_run_that_broke_off_are_there_once: "transactions need a native member",
        exactly_once.all_outputs_of_a_record_are_there_once_or_none_is: "transactions need a native member",
    },
    "spark": {
        resuming.a_record_is_finished_when_it_is_acknowledged_and_not_before: 'commit="manual" is refused there',
        ordering.a_key_meets_the_partition_that_its_hash_says: "it is about the producer, which is the same there",
    },
}
"""The scenarios that do not run on an engine, and why. Callbacks have no scenario here."""


def scenarios_on(engine: Engine) -> list[Scenario]:
    return [play for play in SCENARIOS if play not in LEFT_OUT[engine]]


__all__ = [
    "LEFT_OUT",
    "SCENARIOS",
    "Engine",
    "Scenario",
    "outcomes",
    "outputs",
    "resources",
    "routing",
    "scenarios_on",
    "times",
]
