"""`minute8 import` and `minute8 export`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Desk
from tests.worlds import ARN, job

CRONTAB = "CRON_TZ=Europe/Paris\n30 2 * * * backup\n*/5 * * * * poll\n"


def test_a_crontab_is_imported_once_and_again(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "crontab").write_text(CRONTAB)
    words = ("import", str(tmp_path / "crontab"), "--target", ARN)
    dry = desk(*words, "--dry-run")
    assert (dry.code, dry.out.splitlines()[-1]) == (0, "2 new - nothing was imported")
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []
    done = desk(*words)
    assert (done.code, done.out.splitlines()[-1]) == (0, "2 new")
    jobs = desk.office.alice("GET", "/v1/jobs").json["jobs"]
    assert [found["schedule"] for found in jobs] == [
        {"cron": "30 2 * * *", "timezone": "Europe/Paris"},
        {"cron": "*/5 * * * *", "timezone": "Europe/Paris"},
    ]
    assert desk(*words).out == "2 same\n"
    (tmp_path / "crontab").write_text(CRONTAB.replace("30 2", "45 2"))
    again = desk(*words)
    assert again.out.splitlines()[-1] == "1 changed, 1 same"
    assert "schedule" in again.out.splitlines()[1]
    assert [found["revision"] for found in desk.office.alice("GET", "/v1/jobs").json["jobs"]] == [2, 1]


def test_nothing_is_imported_where_something_cannot_be(desk: Desk) -> None:
    lines = [
        {"job_id": "good", **job(cron="0 3 * * *")},
        {"job_id": "bad", **job(cron="61 3 * * *")},
        {"job_id": "worse", **job(cron="0 3 * * *"), "color": "red"},
        {"job_id": "a/b", **job(cron="0 3 * * *")},
        {"job_id": "good", **job(cron="0 4 * * *")},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    refused = desk("import", "-", stdin=text)
    assert (refused.code, refused.out.splitlines()[-1]) == (2, "1 new, 4 refused - nothing was imported")
    for words in ("line 2", "61", "color", "a/b", "there twice"):
        assert words in refused.out
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []
    told = desk("import", "-", "--skip-invalid", "--json", stdin=text)
    assert (told.code, [step["action"] for step in told.json]) == (2, ["new"] + ["refused"] * 4)
    assert [found["job_id"] for found in desk.office.alice("GET", "/v1/jobs").json["jobs"]] == ["good"]
    assert desk.office.alice("GET", "/v1/jobs/good").json["schedule"] == {"cron": "0 3 * * *"}


def test_what_the_api_refuses_is_told(desk: Desk) -> None:
    desk.environment["MINUTE8_KEY"] = desk.office.alice_reads.key or ""
    told = desk("import", "-", "--target", ARN, stdin=CRONTAB)
    assert (told.code, told.out.splitlines()[-1]) == (2, "2 refused")
    assert "'write'" in told.out


def test_a_suspended_job_is_not_started(desk: Desk) -> None:
    text = json.dumps({"job_id": "a", **job(cron="0 3 * * *"), "state": "paused"})
    assert desk("import", "-", stdin=text).out.splitlines()[-1] == "1 left out"
    assert desk.office.alice("GET", "/v1/jobs").json["jobs"] == []
    desk.office.alice("PUT", "/v1/jobs/a", job(cron="0 4 * * *"))
    desk("jobs", "pause", "a")
    assert desk("import", "-", stdin=text).out.splitlines()[-1] == "1 changed"
    assert desk.office.alice("GET", "/v1/jobs/a").json["state"] == "paused"


def test_what_is_exported_can_be_imported(desk: Desk) -> None:
    for name, sent in {
        "a": job(cron="30 2 * * *", timezone="Europe/Paris", tags=["x"], payload={"é": [1.5, None]}),
        "b": job(every="90m", retry={"max_attempts": 7}, catch_up="all", jitter_s=30),
        "c": job(at="2027-01-01T00:00:00Z", invocation="Event", exclude={"dates": ["2027-01-02"]}),
    }.items():
        desk.office.alice("PUT", f"/v1/jobs/{name}", sent)
    exported = desk("export").out
    assert len(exported.splitlines()) == 3
    assert desk("import", "-", stdin=exported).out == "3 same\n"
    desk.environment["MINUTE8_KEY"] = desk.office.bob.key or ""
    assert desk("import", "-", stdin=exported).out.splitlines()[-1] == "3 new"
    assert desk("export").out == exported


def test_odd_files(desk: Desk) -> None:
    assert desk("import", "/nowhere").code == 2
    assert desk("import", "-", "--format", "xml", stdin="").code == 2
    assert desk("import", "-", stdin="").out == "no jobs found\n"
