"""Where a definition may name secrets."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import InvalidInput
from tests.worlds import World, job

MAX_REFERENCES = 20

HTTP = {
    "kind": "http",
    "url": "https://x.example.com/secret://url",
    "headers": {"X-A": "Bearer secret://header"},
}


@pytest.fixture
def secrets(world: World) -> World:
    for name in ("url", "header", "payload", "patch"):
        world.secrets.put("alice", name, f"the value of {name}", world.clock.now())
    return world


def put(world: World, **fields: Any) -> Any:
    return world.registry.put("alice", "job", job(**({"cron": "0 9 * * *"} | fields)))


def test_a_job_knows_what_it_names(secrets: World) -> None:
    patched = [{"cron": "0 9 * * *", "payload_patch": {"b": "secret://patch"}}]
    stored = secrets.registry.put(
        "alice",
        "job",
        {"schedule": {"schedules": patched}, "target": HTTP, "payload": {"a": ["x secret://payload", 1]}},
    )
    assert stored.secrets == ("header", "patch", "payload", "url")
    assert secrets.store.get("alice", "job") == stored
    assert put(secrets).secrets == ()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"payload": "secret://nobody"}, "payload"),
        ({"payload": {"a": [1, "secret://nobody"]}}, "payload.a.1"),
        ({"payload": "secret://"}, "payload"),
        ({"payload": "secret://-x"}, "payload"),
        ({"payload": "secret://" + "x" * 65}, "payload"),
        ({"payload": "secret://payload{{attempt}}"}, "payload"),
        ({"payload": "secret://{{job_id}}"}, "payload"),
        ({"payload": {"secret://payload": 1}}, "payload"),
        ({"payload": {"a": {"secret://payload": "secret://payload"}}}, "payload"),
        ({"target": {**HTTP, "headers": {"X-A": "secret://nobody"}}}, "target.headers.X-A"),
        ({"target": {**HTTP, "url": "https://x.example.com/?a=secret://nobody"}}, "target.url"),
        ({"target": {**HTTP, "url": "https://secret://url/"}}, "target.url"),
        ({"target": {**HTTP, "url": "secret://url"}}, "target.url"),
        ({"target": {**HTTP, "url": "https://me:secret://url@x.example.com/"}}, "target.url"),
        (
            {
                "target": {
                    "kind": "sns",
                    "arn": "arn:aws:sns:us-east-1:123456789012:alerts",
                    "subject": "secret://payload",
                }
            },
            "target.subject",
        ),
    ],
)
def test_what_names_no_secret_is_refused(secrets: World, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        put(secrets, **fields)
    assert refused.value.field == field


def test_another_tenants_secret_does_not_exist(secrets: World) -> None:
    with pytest.raises(InvalidInput, match="no such secret"):
        secrets.registry.put("bob", "job", job(cron="0 9 * * *", payload="secret://payload"))


def test_how_often_a_job_may_name_secrets(secrets: World) -> None:
    most = ["secret://payload"] * MAX_REFERENCES
    assert put(secrets, payload=most).secrets == ("payload",)
    with pytest.raises(InvalidInput, match="at most 20 times"):
        put(secrets, payload=[*most, "secret://payload"])
    with pytest.raises(InvalidInput, match="at most 20 times"):
        put(secrets, payload=["secret://payload " * (MAX_REFERENCES - 1)], target=HTTP)


def test_how_many_secrets_a_job_may_name(secrets: World) -> None:
    for n in range(5):
        secrets.secrets.put("alice", f"s{n}", "a-secret-value", secrets.clock.now())
    assert len(put(secrets, payload=[f"secret://s{n}" for n in (0, 1, 2, 3, 0)]).secrets) == 4
    with pytest.raises(InvalidInput, match="at most 4 secrets in a job") as refused:
        put(secrets, payload=[f"secret://s{n}" for n in range(5)])
    assert (refused.value.field, refused.value.value) == ("payload.4", "'s4'")


def test_an_input_of_eventbridge_is_sent_as_it_is(secrets: World) -> None:
    target = {
        **job(every=60)["target"],
        "schedule_arn": "arn:aws:scheduler:us-east-1:123456789012:schedule/default/x",
    }
    assert put(secrets, target=target, payload='{"a": "secret://nobody"}').secrets == ()
