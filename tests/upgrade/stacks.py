"""Deployments of the real stack, one upon the other, while jobs run: another version, this one, a bad one, and back.

    python -m tests.upgrade.stacks --retain

The other version is the made-up next one of `versions.py`.

A command, not part of CI: it deploys four times and goes back twice, which takes minutes. The bad deployment is
repaired by the commands of its page of the runbook. Jobs are changed under each version. At the end each execution that
was due has one run in a final state, no job, run or entry of the audit is lost, the tenant's counts are right, and the
doctor finds nothing, or this exits with 1. With --retain the tables outlive what removes them, as in production.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx

from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.states import ENDED
from common.storage.keys import AUDIT_PREFIX
from common.storage.wire import Item, from_wire
from scripts import build_layer, parameters, stack
from scripts.demo.functions import create
from scripts.demo.stage import TARGET_NAME, Stage
from scripts.demo.witness import calls_in, expected
from scripts.embedded import Embedded, deploy, kill, start
from scripts.embedded.deployment import api_url, client, run_osls, stage_service
from scripts.newcomer import Shell
from tests.chaos.__main__ import say
from tests.chaos.verdict import Verdict, judge
from tests.chaos.workload import jobs
from tests.runbook.site import Site
from tests.upgrade.versions import BAD, NEXT, ROOT, Release, checked_out
from tests.waiting import wait_until

STAGE: Final = "test"
TENANT: Final = "tenant-0"
EVERY_S: Final = 30
# Two rounds of all jobs.
WHILE_S: Final = 2 * EVERY_S
# An executor's message waits for up to five minutes after a failure, and one that dies may fail again.
SETTLE_S: Final = 600
# What the doctor finds after the bad deployment is put back, and what it gave up before.
AFTER_PAGE: Final = {"version", "dead letters executions"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.upgrade.stacks", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10)
    parser.add_argument("--retain", action="store_true", help="tables have production's deletion policy")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minute8-stacks-") as directory:
        state_dir = Path(directory)
        embedded = start(state_dir, 0, auth=True, tied=True)
        try:
            params = {"deletionPolicy": "RetainExceptOnCreate"} if options.retain else {}
            return Story(embedded, state_dir, NEXT, params).play(options.jobs)
        finally:
            kill(state_dir)


class Story:
    """One stage, from the release's stack on."""

    def __init__(self, embedded: Embedded, directory: Path, release: Release, params: dict[str, str]) -> None:
        self._params = params
        # What each table of records must keep: jobs, runs and the audit.
        self._kept: dict[str, set[str]] = {}
        self._losses: list[str] = []
        self._embedded = embedded
        self._directory = directory
        self._release = release
        self._checkout = directory / "checkout"
        self._began_at = time.time()

    def play(self, count: int) -> int:
        """Returns the exit status."""
        say(f"the stack of {self._release.name} …")
        checked_out(self._release, self._checkout, folders=())
        self._deploy_files(self._checkout)
        self._register(count)
        self._run("under it")
        say("this version …")
        self._embedded = deploy(self._embedded, stage=STAGE, params=self._params)
        self._run("under this version")
        site = Site(self._embedded, self._directory / "shell", programs={"make": "tests.upgrade.make"})
        say("a bad deployment …")
        self._deploy_files(checked_out(BAD, self._directory / "bad", folders=()))
        wait_until(self._executor_fails, "the executor does not fail")
        site.follow("executor-errors", "First look")
        say("its page is followed")
        print(site.follow("bad-deploy"))
        self._run("after the page")
        problems = site.problems()
        say(f"the doctor finds: {problems or 'nothing'}")
        problems = {check: text for check, text in problems.items() if check not in AFTER_PAGE}
        site.follow("dead-letters")
        say(f"back to {self._release.name} …")
        print(site.run(f"make rollback STAGE={STAGE} ARGS='--timestamp {self._first_deployment()}'"))
        self._run("under it again")
        say("this version again …")
        deploy(self._embedded, stage=STAGE, params=self._params, force=True)
        verdict = self._settle(site)
        self._compare("at the end")
        if "dead letters executions" in site.problems():
            site.follow("dead-letters")
            verdict = self._settle(site)
        problems |= site.problems()
        for record in self._open_runs():
            print(f"open: {record}")
        print(f"\n{verdict}\nlost: {self._losses or 'nothing'}\nthe doctor finds: {problems or 'nothing'}")
        return 1 if verdict.problems or problems or self._losses else 0

    def _deploy_files(self, checkout: Path) -> None:
        """As scripts/embedded/deployment.py does, of another version's files."""
        service = self._directory / f"service-{checkout.name}"
        stage_service(service, build_layer.build_all("local"), checkout)
        arguments = parameters.arguments_of(self._params)
        run_osls(["deploy", "--stage", STAGE, *arguments], service, self._embedded)

    def _register(self, count: int) -> None:
        """A tenant, its key and its jobs, by the release's own command and API."""
        clients = lambda service: client(self._embedded, service)  # noqa: E731
        code = (ROOT / "examples" / "target" / "handler.py").read_text()
        target = create(clients, TARGET_NAME, code, timeout_s=60)
        (self._directory / "former").mkdir()
        environment = self._embedded.env() | {"PYTHONPATH": str(self._checkout), "MINUTE8_STAGE": STAGE}
        shell = Shell(self._directory / "former", environment)
        shell.run(f"minute8 tenants create {TENANT} --allow-target '{target}' --stage {STAGE}")
        key = shell.run(f"minute8 keys create {TENANT} --role write --stage {STAGE} 2>/dev/null").strip()
        self._key = key
        url = f"{api_url(self._embedded, STAGE)}/v1/jobs"
        registrations = jobs(target, count, EVERY_S, random.Random(8))
        with httpx.Client(headers={"authorization": f"Bearer {key}"}, timeout=60) as http:
            for registration in registrations:
                http.put(f"{url}/{registration.job_id}", json=registration.definition).raise_for_status()
        say(f"{len(registrations)} jobs, each due every {EVERY_S} s")

    def _run(self, when: str) -> None:
        """Let the jobs run, with a tick first: the rule's own may be minutes away."""
        self._tick()
        until = time.time() + WHILE_S
        while time.time() < until:
            time.sleep(5)
            self._tick_if_due()
        self._change_a_job()
        self._compare(when)
        say(f"{len(self._stage.runs(self._due()))} runs {when}; kept: {self._sizes()}")

    def _change_a_job(self) -> None:
        """Two changes of a job, each with an entry in the audit."""
        url = f"{api_url(self._embedded, STAGE)}/v1/jobs/plain-0"
        with httpx.Client(headers={"authorization": f"Bearer {self._key}"}, timeout=60) as http:
            for verb in ("pause", "resume"):
                http.post(f"{url}/{verb}").raise_for_status()

    def _compare(self, when: str) -> None:
        """Note what was there before and is not there now, and counts that are not those of the jobs."""
        records = self._records()
        for name, ids in records.items():
            if missing_ids := self._kept.get(name, set()) - ids:
                self._losses.append(f"{when}: {len(missing_ids)} of {name}, such as {min(missing_ids)}")
        self._kept = {name: ids | self._kept.get(name, set()) for name, ids in records.items()}
        [tenant] = [item for item in self._items("tenants") if (item["pk"], item["sk"]) == (TENANT, "TENANT")]
        if tenant["jobs"] != len(records["jobs"]):
            self._losses.append(
                f"{when}: {tenant['jobs']} jobs are counted, {len(records['jobs'])} are there"
            )

    def _records(self) -> dict[str, set[str]]:
        entries = [*self._items("audit"), *self._items("tenants")]
        return {
            "the audit": {item["sk"] for item in entries if item["sk"].startswith(AUDIT_PREFIX)},
            "jobs": {job.job_id for job in self._jobs()},
            "runs": {f"{item['pk']} {item['sk']}" for item in self._items("runs") if "status" in item},
        }

    def _open_runs(self) -> list[Item]:
        """Records of runs that have not ended, and were due a while ago."""
        due = self._due(time.time() - SETTLE_S)
        return [record for record in self._stage.runs(due).values() if record["status"] not in ENDED]

    def _sizes(self) -> str:
        return ", ".join(f"{len(ids)} of {name}" for name, ids in self._kept.items())

    def _items(self, table: str) -> list[Item]:
        """All items of a table; none if this version has no such table."""
        dynamodb = client(self._embedded, "dynamodb")
        pages = dynamodb.get_paginator("scan").paginate(TableName=f"minute8-{STAGE}-{table}")
        try:
            return [from_wire(item) for page in pages for item in page["Items"]]
        except dynamodb.exceptions.ResourceNotFoundException:
            return []

    @property
    def _stage(self) -> Stage:
        return Stage(self._embedded.env(), STAGE)

    def _first_deployment(self) -> str:
        """The timestamp of the release's own."""
        clients = (client(self._embedded, service) for service in ("cloudformation", "s3"))
        return min(stack.timestamps(stack.stored_keys(*clients, STAGE)[1]), key=int)

    def _tick(self) -> None:
        try:
            self._stage.tick()
        except RuntimeError as error:
            say(f"a tick failed: {error}")

    def _tick_if_due(self) -> None:
        progress = self._stage.progress()
        if progress is None or progress.planned_until < time.time() + 60:
            self._tick()

    def _executor_fails(self) -> bool:
        called, nothing = self._stage.called("executor"), b'{"Records": []}'
        answer = client(self._embedded, "lambda").invoke(**called, Payload=nothing)
        return "FunctionError" in answer

    def _jobs(self) -> list[Job]:
        return self._stage.registered([TENANT])

    def _due(self, until: float = 0.0) -> list[Execution]:
        return [
            execution for job in self._jobs() for execution in expected(job, 0, int(until or time.time()))
        ]

    def _settle(self, site: Site) -> Verdict:
        """Wait until everything that is due now has ended; dead letters are sent again by their page."""
        until = time.time()
        due = self._due(until)

        def verdict() -> Verdict:
            self._tick_if_due()
            return judge(due, self._stage.runs(due), calls_in(self._stage.target_log(self._began_at)))

        give_up_at = time.time() + SETTLE_S
        while (result := verdict()).problems and time.time() < give_up_at:
            time.sleep(10)
            site.follow("dead-letters")
        return result


if __name__ == "__main__":
    sys.exit(main())
