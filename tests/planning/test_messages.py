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


times = st.integers(0, 4_102_444_800)
ids = st.text("abcXYZ019._-", min_size=1, max_size=64).filter(lambda name: name[0].isalnum())


@given(
    st.builds(
        Execution,
        tenant=st.text("abc019-", min_size=1, max_size=30).filter(lambda name: name[0].isalnum()),
        job_id=ids,
        fire_at=times,
        due_at=times,
        schedule_revision=st.integers(0, 1_000_000),
        attempt=st.integers(1, 200),
        trigger=st.sampled_from(["schedule", "manual", "backfill"]),
        trigger_id=st.sampled_from(["", "m-1", "b-2026", "u-window"]),
        throttles=st.integers(0, 200),
        not_before_at=times,
        first_due_at=times,
    )
)
def test_a_message_says_all_of_its_execution(execution: Execution) -> None:
    assert Execution.decode(execution.encode()) == execution


@given(executions)
def test_whatever_the_names_hold_it_is_compact_json(execution: Execution) -> None:
    body = execution.encode()
    assert json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False) == body
    fields = json.loads(body)
    assert (fields["tenant"], fields["job"], fields["due_at"]) == (
        execution.tenant,
        execution.job_id,
        execution.due_at,
    )
