"""Runs an app in this process, for ``penstock run`` and for the methods of ``App``: one path from start to end."""

from penstock.lifecycle.app_run import AppRun
from penstock.lifecycle.brokers import choose_brokers
from penstock.lifecycle.engine_choice import RunExtras
from penstock.lifecycle.range_replay import RangeReplay, begin_replay, plan_replay
from penstock.lifecycle.stop_signals import stop_on_signals

__all__ = ["AppRun", "RangeReplay", "RunExtras", "begin_replay", "choose_brokers", "plan_replay", "stop_on_signals"]
