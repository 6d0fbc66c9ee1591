"""The client of Minute8's HTTP API.

from minute8_client import Client

with Client("https://….execute-api.eu-west-1.amazonaws.com", "m8_…") as minute8:
    minute8.put_job("report", {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "target": {…}})
"""

from minute8_client.client import Client
from minute8_client.errors import (
    AlreadyExists,
    Forbidden,
    InvalidInput,
    Minute8Problem,
    NotFound,
    RevisionMismatch,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from minute8_client.shapes import Attempt, Fire, Fires, Job, JobPage, Run, RunPage, Tenant, definition_in

__all__ = [
    "AlreadyExists",
    "Attempt",
    "Client",
    "Fire",
    "Fires",
    "Forbidden",
    "InvalidInput",
    "Job",
    "JobPage",
    "Minute8Problem",
    "NotFound",
    "RevisionMismatch",
    "Run",
    "RunPage",
    "Tenant",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "definition_in",
]
