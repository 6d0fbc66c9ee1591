"""The tables of a deployment: the only place that names them and creates a `Table` for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from common.config import Config
from common.storage import aws
from common.storage.tables import Table


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one deployment. `named` returns one by its short name; it fails if that table is not configured."""

    named: Callable[[str], Table]

    @property
    def jobs(self) -> Table:
        return self.named("jobs")

    @property
    def due(self) -> Table:
        return self.named("due")

    @property
    def tenants(self) -> Table:
        return self.named("tenants")

    @property
    def runs(self) -> Table:
        return self.named("runs")


def tables(settings: Config) -> Tables:
    """The tables of this process's deployment. Reading one raises MissingSetting if its variable is not set."""
    return Tables(lambda name: Table(aws.dynamodb(), settings.required(f"{name}_table")))
