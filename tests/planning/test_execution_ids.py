"""The grammar of ids and execution ids: written ids read back, anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import NotFound
from common.ids import is_id
from common.planning.execution import (
    Execution,
    parse_execution_id,
    split_execution_id,
    split_run_name,
)

JOB_ID_CHARS = 128
NONCE_CHARS = 32
TENANT_ID_CHARS = 64

FIRE_AT = 1_795_230_000
NAME = "20261121T031800Z"


def ids(longest: int) -> st.SearchStrategy[str]:
    return st.from_regex(rf"\A[A-Za-z0-9][A-Za-z0-9._-]{{0,{longest - 1}}}\Z")


@given(
    ids(TENANT_ID_CHARS),
    ids(JOB_ID_CHARS),
    st.integers(0, 7_258_118_399),
    st.just("") | st.builds(str.__add__, st.sampled_from(["m-", "p-", "b-", "u-"]), ids(NONCE_CHARS)),
)
def test_an_execution_id_is_read_as_it_was_written(
    tenant: str, job_id: str, fire_at: int, trigger_id: str
) -> None:
    execution = Execution(tenant, job_id, fire_at, fire_at, 1, trigger_id=trigger_id)
    assert split_execution_id(execution.execution_id) == (tenant, job_id, execution.run_name)
    assert split_run_name(execution.run_name) == (fire_at, trigger_id)
    read = parse_execution_id(tenant, execution.execution_id)
    assert read.execution_id == execution.execution_id


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alice",
        f"alice:job:{NAME}:",
        f"alice:job:{NAME}:m-x:more",
        f"alice::{NAME}",
        f":job:{NAME}",
        f"alice:.job:{NAME}",
        f"alice:job:{NAME}0123456789",
        "alice:job:20261332T031800Z",
        "alice:job:20261121T031800Z:",
        "alice:job:20261121T031800Z:٣",
        f"alice:{'j' * (JOB_ID_CHARS + 1)}:{NAME}",
        f"{'a' * (TENANT_ID_CHARS + 1)}:job:{NAME}",
        f"alice:job:{NAME}:m-{'n' * (NONCE_CHARS + 1)}",
        f"alice:job:{NAME}\n",
    ],
)
def test_text_that_is_no_execution_id_is_refused(text: str) -> None:
    assert split_execution_id(text) is None
    with pytest.raises(NotFound):
        parse_execution_id(text.partition(":")[0], text)


def test_a_trigger_that_this_code_does_not_know_is_no_execution_of_ours() -> None:
    assert split_execution_id(f"alice:job:{NAME}:x-1")
    with pytest.raises(NotFound):
        parse_execution_id("alice", f"alice:job:{NAME}:x-1")


@pytest.mark.parametrize("value", [None, 7, "", "-a", ".a", "a/b", "a:b", "ä", "a\n", "a" * 9])
def test_what_is_no_id(value: object) -> None:
    assert not is_id(value, 8)
