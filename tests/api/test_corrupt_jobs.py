"""Jobs whose items were edited by hand: named in lists, no job of a tenant hides the others, replaced and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from common.storage import keys
from common.truth.contradiction import JOB_CORRUPT, TEXT_MISSING
from common.truth.truth import Truth
from tests.api.calls import Office
from tests.worlds import job

DEFINITION = job(cron="0 3 * * *", tags=["night"], name="The report")
LISTS = ("/v1/jobs", "/v1/jobs?health=true", "/v1/jobs?sort=name", "/v1/jobs?q=other", "/v1/overview")
LISTS = (*LISTS, "/v1/upcoming", "/v1/clock-changes", "/v1/expected")


def stored(office: Office) -> dict[str, Any]:
    office.alice("PUT", "/v1/jobs/report", DEFINITION)
    office.alice("PUT", "/v1/jobs/other", DEFINITION)
    item = office.world.table("jobs").get(keys.job("alice", "report"))
    assert item
    return item


def names(office: Office) -> list[tuple[str, str]]:
    world = office.world
    truth = Truth(world.tables, world.queue, world.clock)
    return [
        (contradiction.name, contradiction.subject.name)
        for _, of_subject in truth.all()
        for contradiction in of_subject
    ]


@pytest.mark.parametrize("value", [None, "?", 7, ["?"], {"?": 1}], ids=str)
def test_each_attribute_may_be_lost_or_another_and_the_job_is_replaced_or_deleted(
    office: Office, value: object
) -> None:
    item = stored(office)
    for name in sorted(set(item) - {"pk", "sk"}):
        damaged = (
            {**item, name: value} if value is not None else {key: item[key] for key in item if key != name}
        )
        office.world.table("jobs").put(damaged)
        for path in LISTS:
            answer = office.alice("GET", path)
            assert answer.status == 200, (name, path, answer.text)
        listed = office.alice("GET", "/v1/jobs").json
        ids = {job["job_id"] for job in listed["jobs"]}
        corrupt = {job["job_id"] for job in listed["corrupt"]}
        assert "other" in ids and "report" in ids ^ corrupt, (name, listed)
        assert office.alice("GET", "/v1/jobs/report/explain").status == 200, name
        if corrupt:
            assert office.alice("GET", "/v1/jobs/report").status == 409
            assert office.alice("POST", "/v1/jobs/report/pause").status == 409
            assert (JOB_CORRUPT, "alice/report") in names(office)
        assert office.alice("PUT", "/v1/jobs/report", DEFINITION).status in (200, 201), name
        assert office.alice("GET", "/v1/jobs/report").status == 200
        assert office.alice("GET", "/v1/jobs").json["corrupt"] == []
        office.world.table("jobs").put(damaged)
        assert office.alice("DELETE", "/v1/jobs/report").status == 204, name
        assert office.alice("GET", "/v1/jobs/report").status == 404
        stored(office)


def test_a_payload_that_is_gone_hides_no_other_job(office: Office) -> None:
    stored(office)
    large = {**DEFINITION, "payload": "x" * 3_000}
    office.alice("PUT", "/v1/jobs/report", large)
    sha256 = office.world.store.get("alice", "report").payload.sha256
    office.world.table("jobs").delete(keys.job_text("alice", "report", sha256))
    listed = office.alice("GET", "/v1/jobs").json
    assert [job["job_id"] for job in listed["jobs"]] == ["other"]
    assert listed["corrupt"] == [{"job_id": "report", "problem": "its payload is not stored"}]
    assert office.alice("GET", "/v1/jobs/report").status == 409
    assert (TEXT_MISSING, "alice/report") in names(office)
    assert office.alice("PUT", "/v1/jobs/report", {**large, "payload": "y"}).status == 200
    assert office.alice("GET", "/v1/jobs").json["corrupt"] == []
