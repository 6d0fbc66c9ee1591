"""The names of schedules and groups, as ids of jobs and as ARNs. Pure.

The id of a schedule in the group `default` is its name; in another group the id is `<group>..<name>`. Names allow more
than ids do. If no id can hold the names, the id is a hash, and the job itself knows the names.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from common.ids import is_id
from common.limits import JOB_ID_CHARS
from common.storage.domains import partition_of

DEFAULT_GROUP: Final = "default"
NAME_CHARS: Final = 64
NAME_PATTERN: Final = "[0-9a-zA-Z-_.]+"
_SEPARATOR: Final = ".."
_HASHED: Final = "eb..."
# Such a text has no dot at its ends and no two dots in a row, so the separator is unambiguous.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.ASCII)


def job_id_of(group: str, name: str) -> str:
    """The id of the job of a schedule; different for any two schedules."""
    natural = name if group == DEFAULT_GROUP else f"{group}{_SEPARATOR}{name}"
    if _PLAIN.fullmatch(group) and _PLAIN.fullmatch(name) and is_id(natural, JOB_ID_CHARS):
        return natural
    return f"{hashed_prefix(group)}{_hash(f'{group}/{name}')[:32]}"


def names_in(job_id: str) -> tuple[str, str]:
    """The group and the name in the id of a job; the inverse of `job_id_of` for ids without a hash."""
    group, separator, name = job_id.rpartition(_SEPARATOR)
    return (group, name) if separator else (DEFAULT_GROUP, job_id)


def job_id_prefixes(group: str | None, name_prefix: str = "") -> tuple[str, ...]:
    """Sorted prefixes of the ids of schedules whose names begin with `name_prefix`, of one group or of all (None).

    Ids of other jobs can have these prefixes, too.
    """
    name = name_prefix if not name_prefix.startswith(".") and _SEPARATOR not in name_prefix else ""
    if group is None:
        return ("",)
    prefixes = {name if group == DEFAULT_GROUP else f"{group}{_SEPARATOR}{name}", hashed_prefix(group)}
    covered = {
        prefix for prefix in prefixes if any(prefix.startswith(other) for other in prefixes - {prefix})
    }
    return tuple(sorted(prefixes - covered))


def is_hashed(job_id: str) -> bool:
    """Whether the id is a hash of the names."""
    return job_id.startswith(_HASHED)


def hashed_prefix(group: str) -> str:
    """How the ids of a group's schedules begin whose names no id can hold."""
    return f"{_HASHED}{_hash(group)[:16]}."


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class AwsAccount:
    """The region and account of ARNs."""

    region: str
    account_id: str
    partition: str = "aws"

    @classmethod
    def in_region(cls, region: str, account_id: str) -> AwsAccount:
        """The account in the partition of the region."""
        return cls(region, account_id, partition_of(region))

    @classmethod
    def of_arn(cls, arn: str) -> AwsAccount:
        """The account that an ARN names."""
        _, partition, _, region, account_id, *_ = [*arn.split(":"), *[""] * 5]
        return cls(region, account_id, partition)

    def arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account_id}:{resource}"

    def schedule_arn(self, group: str, name: str) -> str:
        return self.arn("scheduler", f"schedule/{group}/{name}")

    def group_arn(self, name: str) -> str:
        return self.arn("scheduler", f"schedule-group/{name}")

    def group_of(self, arn: str) -> str | None:
        """The name of the group with this ARN; None for any other text."""
        prefix = self.group_arn("")
        name = arn.removeprefix(prefix)
        is_name = len(name) <= NAME_CHARS and re.fullmatch(NAME_PATTERN, name, re.ASCII)
        return name if arn.startswith(prefix) and is_name else None
