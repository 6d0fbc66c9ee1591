"""A platform that creates a job for each of its customers: a report, every night at half past two local time.

    PYTHONPATH=. python examples/job_per_customer.py customers.csv arn:aws:lambda:eu-west-1:123456789012:function:report

`PYTHONPATH=.` is for a checkout; with `pip install minute8` it is not needed.
The file has the columns `id` and `timezone`. MINUTE8_URL and MINUTE8_KEY hold the API's address and the key. The job
ids are derived from the customers' ids, so running it again updates the jobs.
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from minute8 import Client
from minute8.client import InvalidInput


def register(minute8: Client, customer: Mapping[str, str], target: str) -> None:
    """Create or update this customer's job. Raises the API's refusals."""
    minute8.put_job(
        f"report-{customer['id']}",
        {
            "schedule": {"cron": "30 2 * * *", "timezone": customer["timezone"], "jitter_s": 600},
            "target": {"kind": "lambda", "arn": target},
            "payload": {"customer": customer["id"]},
            "tags": ["nightly-report"],
        },
    )


def register_all(minute8: Client, customers: Iterable[Mapping[str, str]], target: str) -> list[str]:
    """One job per customer; jobs of former customers are deleted. Returns the refused customers with reasons."""
    refused: list[str] = []
    former_jobs = {job["job_id"] for job in minute8.list_jobs(tag="nightly-report")}
    for customer in customers:
        former_jobs.discard(f"report-{customer['id']}")
        try:
            register(minute8, customer, target)
        except InvalidInput as error:  # a mistake in one customer's data; any other refusal ends the program
            refused.append(f"{customer['id']}: {error}")
    for job_id in former_jobs:
        minute8.delete_job(job_id)
    return refused


def main(file: str, target: str) -> int:
    """Register the file's customers; 1 if one was refused."""
    with Client(os.environ["MINUTE8_URL"], os.environ["MINUTE8_KEY"]) as minute8, Path(file).open() as rows:
        refused = register_all(minute8, csv.DictReader(rows), target)
    for line in refused:
        print(line, file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
