"""Run the tests in several processes at once: ``python -m suite tests/unit tests/integration``."""

import argparse
import shlex
import signal
import sys
from pathlib import Path

from suite.background import Background
from suite.report import closing_line, say, show_stage
from suite.run import Stage, run_stage
from suite.verdict import Verdict

# These tests use real servers on a machine that may be busy. A test that fails runs again, alone.
_SECOND_CHANCE = "tests/integration"
# Unit tests compute; tests against servers mostly wait, for members to join, for servers, and for time-outs to pass.
_UNIT_WORKERS = 2
# With four workers, two cores were idle for half of the time: 980 s of processor time in 1,150 s. Each worker has a
# broker of its own, so a run takes about 7 GB of memory.
_INTEGRATION_WORKERS = 6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m suite", description=__doc__)
    parser.add_argument("stages", nargs="+", metavar="PATH", help="folders of tests, run one after the other")
    parser.add_argument("--workers", type=int, help="processes per stage (default: 2 for unit tests, else 6)")
    parser.add_argument("--beside", help="a command that runs beside the first stage, and has to succeed")
    options = parser.parse_args()
    # If a shell starts this process in the background, it and its children ignore Ctrl+C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _run(options)
    except KeyboardInterrupt:
        say("Interrupted. Everything that the tests started has been stopped.")
        return 130


def _run(options: argparse.Namespace) -> int:
    verdicts: list[Verdict] = []
    beside = Background(shlex.split(options.beside)) if options.beside else None
    green = True
    try:
        for path in options.stages:
            stage = _stage(path, options.workers)
            verdicts.append(run_stage(stage))
            show_stage(path, verdicts[-1])
            green = verdicts[-1].green
            if beside is not None:
                green &= beside.finish()
                beside = None
            if not green:
                break
    finally:
        if beside is not None:
            beside.stop()
    say(closing_line(verdicts))
    return 0 if green else 1


def _stage(path: str, workers: int | None) -> Stage:
    real = Path(path.partition("::")[0]).is_relative_to(_SECOND_CHANCE)
    usual = _INTEGRATION_WORKERS if real else _UNIT_WORKERS
    return Stage(path, workers=workers or usual, second_chance=real)


if __name__ == "__main__":
    sys.exit(main())
