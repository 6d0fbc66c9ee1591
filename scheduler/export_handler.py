"""The exporter's function: each hour it writes the runs of past days to the bucket of `runsExport`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

from common.config import config
from common.deployment import Deployment
from common.planning.chores import Chore, ChoreRunner
from common.storage import aws
from scheduler.exporter import Exporter

# https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
_DELETED_AT_ONCE: Final = 1_000
# No tenant's window begins later than this after the round's begin. The function has 300 s.
_MAX_WORK_S: Final = 200


@dataclass(frozen=True, slots=True)
class S3Bucket:
    """A bucket of S3."""

    client: Any
    name: str

    def put(self, name: str, data: bytes) -> None:
        """Write a whole object, in place of one of this name."""
        self.client.put_object(Bucket=self.name, Key=name, Body=data, ContentType="application/gzip")

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects. Raises RuntimeError if S3 leaves one."""
        remaining = iter(names)
        while objects := [{"Key": name} for name in islice(remaining, _DELETED_AT_ONCE)]:
            answer = self.client.delete_objects(Bucket=self.name, Delete={"Objects": objects, "Quiet": True})
            if errors := answer.get("Errors"):
                raise RuntimeError(f"S3 left {len(errors)} objects, the first: {errors[0]}")

    def names(self, prefix: str) -> Iterator[str]:
        """The names of all objects that begin so."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix)
        return (item["Key"] for page in pages for item in page.get("Contents", ()))

    def folders(self, prefix: str) -> Iterator[str]:
        """The names up to the first / after the prefix, each once."""
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix=prefix, Delimiter="/"
        )
        return (item["Prefix"] for page in pages for item in page.get("CommonPrefixes", ()))


def handle(event: object, context: object) -> dict[str, int]:
    """One round. Returns what it did; raises RuntimeError if a day could not be exported."""
    export = exporter()
    runner = ChoreRunner(export.tables.due, export.clock, "export")
    (done,) = runner.run([Chore("export", export.steps)], export.clock.now() + _MAX_WORK_S)
    if failed := done.errors + done.problems:
        raise RuntimeError(f"{len(failed)} days could not be exported, the first: {failed[0]}")
    return dict(done.counts)


@cache
def exporter() -> Exporter:
    """This process's exporter."""
    deployment, settings = Deployment(config()), config()
    bucket = S3Bucket(aws.s3(), settings.required("runs_export"))
    return Exporter(deployment.tables, bucket, f"minute8-{settings.stage}/runs", deployment.clock)
