"""The names of schedules and groups, as ids of jobs and as ARNs. Pure.

A schedule of the group `default` is the job of the same name, one of another group is `<group>..<name>`. Names allow
more than ids do: in those that no id can hold, the id is a hash, and the job itself knows its names.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from common.ids import JOB_ID_CHARS, is_id

DEFAULT_GROUP: Final = "default"
NAME_CHARS: Final = 64
NAME_PATTERN: Final = "[0-9a-zA-Z-_.]+"
_SEPARATOR: Final = ".."
_HASHED: Final = "eb..."
# No such text begins or ends with a dot, or has two in a row, so the separator is found again.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*", re.ASCII)


def job_id_of(group: str, name: str) -> str:
    """The id of the job of a schedule; different for any two schedules."""
    natural = name if group == DEFAULT_GROUP else f"{group}{_SEPARATOR}{name}"
    if _PLAIN.fullmatch(group) and _PLAIN.fullmatch(name) and is_id(natural, JOB_ID_CHARS):
        return natural
    return f"{_hashed_of(group)}{_hash(f'{group}/{name}')[:32]}"


def job_id_prefixes(group: str | None, name_prefix: str = "") -> tuple[str, ...]:
    """Sorted prefixes of the ids of schedules whose names begin with `name_prefix`, of one group or of all (None).

    Ids of other jobs can have these prefixes, too.
    """
    name = name_prefix if not name_prefix.startswith(".") and _SEPARATOR not in name_prefix else ""
    if group is None:
        return ("",)
    wanted = {name if group == DEFAULT_GROUP else f"{group}{_SEPARATOR}{name}", _hashed_of(group)}
    return tuple(
        sorted(one for one in wanted if not any(one != other and one.startswith(other) for other in wanted))
    )


def _hashed_of(group: str) -> str:
    return f"{_HASHED}{_hash(group)[:16]}."


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """The region and the account that ARNs name."""

    region: str
    account: str

    def schedule_arn(self, group: str, name: str) -> str:
        return f"{self._prefix}:schedule/{group}/{name}"

    def group_arn(self, name: str) -> str:
        return f"{self._prefix}:schedule-group/{name}"

    def group_of(self, arn: str) -> str | None:
        """The name of the group with this ARN; None for any other text."""
        prefix = self.group_arn("")
        name = arn.removeprefix(prefix)
        is_name = len(name) <= NAME_CHARS and re.fullmatch(NAME_PATTERN, name, re.ASCII)
        return name if arn.startswith(prefix) and is_name else None

    @property
    def _prefix(self) -> str:
        partition = "aws-cn" if self.region.startswith("cn-") else "aws"
        if self.region.startswith("us-gov-"):
            partition = "aws-us-gov"
        return f"arn:{partition}:scheduler:{self.region}:{self.account}"
