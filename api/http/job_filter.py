"""The filter of a list of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Final

from api.http.routing import Query
from common.errors import InvalidInput
from common.jobs.job import ACTIVE, PAUSED, Job, exists

# The most jobs that one request reads.
MAX_SEEN: Final = 2_000
_LONGEST: Final = 200

FILTERS: Final = (
    Query("state", "Only jobs in this state.", {"type": "string", "enum": [ACTIVE, PAUSED]}),
    Query("tag", "Only jobs with this tag.", {"type": "string", "maxLength": _LONGEST}),
    Query("name_prefix", "Only jobs whose id or name begins so.", {"type": "string", "maxLength": _LONGEST}),
    Query("target", "Only jobs with this ARN or URL as target.", {"type": "string", "maxLength": 2_000}),
)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The conditions that a listed job must meet; an empty field sets none."""

    state: str = ""
    tag: str = ""
    name_prefix: str = ""
    target: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> JobFilter:
        """Raises InvalidInput."""
        given = {parameter.name: query.get(parameter.name, "") for parameter in FILTERS}
        for parameter in FILTERS:
            value = given[parameter.name]
            if len(value) > parameter.schema.get("maxLength", _LONGEST):
                raise InvalidInput(parameter.name, "is too long", value=value, accepted="a shorter text")
            if parameter.name in query and not value:
                raise InvalidInput(parameter.name, "is empty", accepted="a text, or no such parameter")
        if given["state"] not in ("", ACTIVE, PAUSED):
            raise InvalidInput(
                "state", "must be a state", value=given["state"], accepted=f"{ACTIVE}, {PAUSED}"
            )
        return cls(**given)

    @property
    def list_name(self) -> str:
        """The name of the filtered list, to which a cursor is bound."""
        return f"jobs:{astuple(self)!r}"

    def takes(self, job: Job) -> bool:
        """Whether the job exists, and is one of these."""
        return (
            exists(job)
            and self.state in ("", job.state)
            and (not self.tag or self.tag in job.tags)
            and any(text.startswith(self.name_prefix) for text in (job.job_id, job.name))
            and self.target in ("", job.target.get("arn"), job.target.get("url"))
        )
