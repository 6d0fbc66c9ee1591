"""The hand-written encoder gives the same JSON as json.dumps."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from common.planning.execution import Execution

names = st.text(min_size=1)
executions = st.builds(
    Execution,
    tenant=names,
    job_id=names,
    fire_at=st.integers(),
    due_at=st.integers(),
    schedule_revision=st.integers(0),
    attempt=st.integers(1),
    trigger=names,
    trigger_id=st.text(),
    throttles=st.integers(0),
    not_before_at=st.integers(0),
)


@given(executions)
def test_whatever_the_names_hold_it_is_compact_json(execution: Execution) -> None:
    body = execution.encode()
    assert json.dumps(json.loads(body), separators=(",", ":")) == body
    fields = json.loads(body)
    assert (fields["tenant"], fields["job"], fields["due_at"]) == (
        execution.tenant,
        execution.job_id,
        execution.due_at,
    )
