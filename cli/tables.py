"""A deployment's tables, for commands with AWS credentials."""

from __future__ import annotations

import os
from typing import Literal

from common.storage import aws
from common.storage.tables import Table


def table(kind: Literal["tenants", "jobs", "runs", "due"], stage: str) -> Table:
    """The stage's table, or the one that TENANTS_TABLE, JOBS_TABLE and so on name."""
    return Table(aws.dynamodb(), os.environ.get(f"{kind.upper()}_TABLE") or f"minute8-{stage}-{kind}")
