"""What a position in a list is made of. A client can write a cursor itself, so each part says what it may be."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from common.ids import id_pattern
from common.limits import JOB_ID_CHARS

# `$` alone would let a final line feed pass.
_AT_THE_END = r"(?!\n)"
_JOB_ID = id_pattern(JOB_ID_CHARS).strip("^$")
# Epoch seconds.
Instant = Annotated[int, Meta(ge=0, lt=10**11)]
JobId = Annotated[str, Meta(pattern=f"^{_JOB_ID}${_AT_THE_END}")]
JobIdOrEmpty = Annotated[str, Meta(pattern=f"^({_JOB_ID})?${_AT_THE_END}")]
# What DynamoDB accepts as part of a key.
KeyText = Annotated[str, Meta(pattern=r"^[ -~]{1,1000}$" + _AT_THE_END)]
KeyTextOrEmpty = Annotated[str, Meta(pattern=r"^[ -~]{0,1000}$" + _AT_THE_END)]
# A run's name, and its job.
RunPosition = tuple[KeyText, JobId]
# Of an instant with fractions. Neither is a number that DynamoDB cannot hold.
Moment = Annotated[int, Meta(ge=1, lt=10**11)] | Annotated[float, Meta(ge=1, lt=10**11)]
# When a run failed, its job, its name.
FailurePosition = tuple[Moment, JobId, KeyText]
