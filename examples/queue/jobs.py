"""A queue of jobs: any number of workers share one partition. Run it with `penstock run jobs:app`, several times.

It is a share group: the broker gives each job to one worker, in no order, and again to another one if the worker dies.
"""

import time
from dataclasses import dataclass

from penstock import App, Reject, Retry

app = App("jobs")


@dataclass
class Job:
    id: int
    seconds: float = 0.0


@dataclass
class Report:
    job: int


@app.consume(
    "jobs", to="reports", dead_letter="jobs.dlq", mode="share", concurrency=8, retry=Retry(attempts=3)
)  # fmt: skip
def work(job: Job) -> Report:
    if job.seconds < 0:
        raise Reject("a job cannot take less than no time")
    time.sleep(job.seconds)
    return Report(job.id)
