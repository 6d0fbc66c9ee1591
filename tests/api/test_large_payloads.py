"""Large payloads in the API: what shows a payload reads it, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from common.storage import keys
from common.storage.wire import item_bytes, to_wire
from tests.api.aws_schedules import ROLE, Aws, schedule, target
from tests.api.calls import Office
from tests.worlds import job

KIB = 1024
PAYLOAD_BYTES = 128 * KIB
LARGEST = "x" * (PAYLOAD_BYTES - 2)
SQS_API = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"


@pytest.fixture
def furnished(office: Office) -> Office:
    """20 jobs with the largest payload, and one with a small one."""
    for number in range(20):
        fields = job(cron="0 3 * * *", payload={"n": number, "text": LARGEST[:-60]}, tags=["large"])
        assert office.alice("PUT", f"/v1/jobs/job-{number:02}", fields).status == 201
    office.alice("PUT", "/v1/jobs/small", job(cron="0 3 * * *", payload=[1.0, None]))
    return office


@contextmanager
def texts_read(office: Office) -> Iterator[list[str]]:
    """The hashes of the texts that are read meanwhile."""
    dynamodb, names = office.world.dynamodb, list[str]()
    read_many = dynamodb.batch_get_item

    def batch_get_item(**request: Any) -> Any:
        for table in request["RequestItems"].values():
            names.extend(key["sk"]["S"] for key in table["Keys"] if key["pk"]["S"].endswith("#text"))
        return read_many(**request)

    dynamodb.batch_get_item = batch_get_item
    yield names
    del dynamodb.batch_get_item


def pages(office: Office, path: str) -> Iterator[list[dict[str, Any]]]:
    cursor = ""
    while cursor is not None:
        answer = office.alice("GET", f"{path}?limit=200{'&cursor=' + cursor if cursor else ''}").json
        yield answer["jobs"]
        cursor = answer["next_cursor"]


def test_lists_show_payloads_in_pages_of_a_mebibyte(furnished: Office) -> None:
    shown = list(pages(furnished, "/v1/jobs"))
    assert [len(page) for page in shown] == [8, 8, 5]
    payloads = [each["payload"] for page in shown for each in page]
    assert payloads == [{"n": number, "text": LARGEST[:-60]} for number in range(20)] + [[1.0, None]]
    assert all(len(json.dumps(page)) < 9 * 133 * KIB for page in shown)


def test_what_shows_no_payload_reads_none(furnished: Office) -> None:
    """Searches that find nothing, health, fire times, changes of other fields, runs by hand, and deletions."""
    with texts_read(furnished) as read:
        assert furnished.alice("GET", "/v1/jobs?tag=nobody").json["jobs"] == []
        for path in ("job-01/health", "job-01/next", "job-01/runs"):
            assert furnished.alice("GET", f"/v1/jobs/{path}").status == 200, path
        assert furnished.alice("GET", "/v1/upcoming").status == 200
        assert furnished.alice("POST", "/v1/jobs/job-01/run").status in (200, 202)
        assert furnished.alice("POST", "/v1/jobs/_all/pause", {"tag": "large"}).status == 200
        assert furnished.alice("DELETE", "/v1/jobs/job-01").status == 204
        lines = [{"job_id": "job-02", **job(cron="0 4 * * *", payload=LARGEST), "name": "new"}]
        answer = furnished.alice("POST", "/v1/jobs/_bulk?dry_run=true", lines).json
        assert set(answer["results"][0]["changed"]) == {"name", "payload", "schedule", "tags"}
    assert read == []


def test_a_patch_merges_with_a_large_payload(furnished: Office) -> None:
    url = "/v1/jobs/job-03"
    assert furnished.alice("PATCH", url, {"payload": {"n": None, "m": [2]}}).json["payload"] == {
        "text": LARGEST[:-60],
        "m": [2],
    }
    patched = furnished.alice("GET", url).json
    assert patched["payload"] == {"text": LARGEST[:-60], "m": [2]}
    assert furnished.alice("PATCH", url, {"payload": {"m": [2]}}).json["revision"] == patched["revision"]
    reordered = {"m": [2], "text": LARGEST[:-60]}
    assert furnished.alice("PATCH", url, {"payload": reordered}).json["revision"] == patched["revision"]
    for path in ("pause", "resume"):
        assert furnished.alice("POST", f"{url}/{path}").json["payload"] == reordered


def test_an_export_has_large_payloads_and_changes_nothing(furnished: Office) -> None:
    exported, path = [], "/v1/jobs/_export"
    while path:
        answer = furnished.alice("GET", path)
        exported += answer.text.splitlines()
        path = (
            "/v1/jobs/_export" + answer.headers["link"][1:].partition(">")[0]
            if "link" in answer.headers
            else ""
        )
    assert [json.loads(line)["job_id"] for line in exported] == [*(f"job-{n:02}" for n in range(20)), "small"]
    with texts_read(furnished) as read:
        body = "\n".join(exported).encode()
        again = furnished.alice("POST", "/v1/jobs/_bulk", body, Content_Type="application/x-ndjson")
    assert (again.json["unchanged"], read) == (21, [])


def test_the_audit_tells_that_it_changed(furnished: Office) -> None:
    furnished.world.clock.sleep(1)
    furnished.alice("PATCH", "/v1/jobs/job-04", {"payload": "y" * 2_000})
    (entry,) = furnished.alice_admin("GET", "/v1/audit?subject=job-04&limit=1").json["entries"]
    assert entry["after"]["payload"].keys() == entry["before"]["payload"].keys() == {"hmac"}
    assert entry["after"]["payload"] != entry["before"]["payload"]


def test_schedules_of_aws_keep_large_inputs(office: Office, aws: Aws) -> None:
    client = aws()
    plain, sdk = json.dumps({"text": "x" * 100_000}), json.dumps({"a": "<aws.scheduler.execution-id>"})
    universal = json.dumps(
        {
            "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/q",
            "MessageBody": "m" * 100_000,
        }
    )
    inputs = {"plain": plain, "small": sdk, "universal": universal}
    for name, text in inputs.items():
        arn = {"Arn": SQS_API, "RoleArn": ROLE} if name == "universal" else {}
        client.create_schedule(**schedule(Name=name, Target=target(**arn, Input=text)))
        assert client.get_schedule(Name=name)["Target"]["Input"] == text
        stored = office.world.table("jobs").get(keys.job("alice", name)) or {}
        assert item_bytes(to_wire(stored)) < 2 * KIB
    with texts_read(office) as read:
        listed = client.list_schedules()["Schedules"]
    assert {each["Name"]: each["Target"]["Arn"] == SQS_API for each in listed} == {
        name: name == "universal" for name in inputs
    }
    assert read == []
    office.alice("PATCH", "/v1/jobs/plain", {"tags": ["mine"]})
    assert client.get_schedule(Name="plain")["Target"]["Input"] == plain
    office.alice("PATCH", "/v1/jobs/plain", {"payload": plain + " "})
    assert client.get_schedule(Name="plain")["Target"]["Input"] == plain + " "
