"""The demo's actions: deploys the sample target, registers jobs, ticks, and reads runs, as a platform would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3

from common.clock import SystemClock
from common.config import LIVE, config
from common.deployment import Deployment
from common.errors import AlreadyExists
from common.jobs.job import Job
from common.planning.due_index import DueIndex, PlanningProgress
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.platform.tenants import Tenants
from common.registration.definition import Limits
from common.registration.functions import Functions
from common.registration.registry import Registry
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.wire import Item, from_wire, to_wire
from common.tenants.audit import AWS
from common.timing.instants import DAY_S
from minute8.eventbridge.import_lines import ScheduleLines
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from scripts.demo import functions
from scripts.demo.workload import Registration

TARGET_SOURCE = Path(__file__).resolve().parents[2] / "examples" / "target" / "handler.py"
TARGET_NAME = "sample-target"
_WRITERS = 8
# What BatchGetItem takes: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_A_READ = 100


class Stage:
    """A deployed stage of Minute8, reached as any AWS client reaches it.

    `env` says where, as `Embedded.env()` does; empty: where this process's own environment says.
    """

    def __init__(self, env: Mapping[str, str], stage: str = "local", target_name: str = TARGET_NAME) -> None:
        self._session = boto3.Session(
            aws_access_key_id=env.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=env.get("AWS_SECRET_ACCESS_KEY"),
            region_name=env.get("AWS_REGION"),
        )
        self._endpoint = env.get("AWS_ENDPOINT_URL")
        self.name = f"minute8-{stage}"
        self.target_name = target_name
        self._dynamodb = self.client("dynamodb")
        self._lambda = self.client("lambda")
        self._logs = self.client("logs")
        self._sqs = self.client("sqs")
        self._clock = SystemClock()
        self.index = DueIndex(self._table("due"))
        url = self._sqs.get_queue_url(QueueName=f"{self.name}-executions")["QueueUrl"]
        deployment = Deployment(
            config(), tables=Tables(self._table), queue=ExecutionsQueue(self._sqs, url, self._clock)
        )
        self.store = replace(deployment.stored_jobs, by=AWS)
        limits = Limits.of_executor(self._executor_timeout_s(), payload_formats=PAYLOAD_FORMATS)
        functions = Functions(lambda: self._lambda, self._clock)
        limits = replace(limits, function_timeout_s=functions.timeout_s, check_function=functions.check)
        self.registry = Registry(self.store, limits, ScheduleLines())

    def client(self, service: str) -> Any:
        """A new client of `service`."""
        return self._session.client(service, endpoint_url=self._endpoint)  # type: ignore[call-overload]

    def _table(self, name: str) -> Table:
        return Table(self._dynamodb, f"{self.name}-{name}")

    def _executor_timeout_s(self) -> int:
        return int(self._lambda.get_function_configuration(**self.called("executor"))["Timeout"])

    def called(self, function: str) -> dict[str, str]:
        """The parameters by which a function is called: its alias."""
        return {"FunctionName": f"{self.name}-{function}", "Qualifier": LIVE}

    def deploy_target(self) -> str:
        """Create the sample target, if it is not there, and return its ARN."""
        return functions.create(self.client, self.target_name, TARGET_SOURCE.read_text(), timeout_s=60)

    def allow(self, tenants: Iterable[str], target: str) -> None:
        """Create these tenants and allow them to call the target: a new tenant may call nothing."""
        stored, now = Tenants(self._table("tenants")), self._clock.now()
        for tenant in sorted(set(tenants)):
            try:
                stored.create(tenant, "", now, {"allowed_targets": [target]})
            except AlreadyExists:
                stored.edit(tenant, {"allowed_targets": [target]}, now)

    def key_for_a_day(self, tenant: str) -> str:
        """A new key of the role write."""
        now = self._clock.now()
        keys_of_tenants = Tenants(self._table("tenants")).api_keys
        return keys_of_tenants.create_key(tenant, "write", now, name="demo", expires_at=int(now) + DAY_S)[0]

    def register(self, registrations: Sequence[Registration]) -> list[Job]:
        """Store all jobs."""

        def put(registration: Registration) -> Job:
            return self.registry.put(registration.tenant, registration.job_id, registration.definition)

        with ThreadPoolExecutor(_WRITERS) as pool:
            return list(pool.map(put, registrations))

    def registered(self, tenants: Iterable[str]) -> list[Job]:
        """The jobs of these tenants."""
        return [job for tenant in tenants for job in self.store.list_jobs(tenant, limit=10_000)]

    def progress(self) -> PlanningProgress | None:
        return self.index.progress()

    def tick(self) -> Any:
        """Call the scheduler function, as its rule does at minute 8."""
        answer = self._lambda.invoke(**self.called("scheduler"), Payload=b"{}")
        body = answer["Payload"].read().decode()
        if "FunctionError" in answer:
            raise RuntimeError(f"the scheduler failed: {body}")
        return body

    def runs(self, executions: Iterable[Execution]) -> dict[str, Item]:
        """The existing runs of these executions, by execution id."""
        by_key = {
            (key["pk"], key["sk"]): execution.execution_id
            for execution in executions
            for key in [keys.run(execution.tenant, execution.job_id, execution.run_name)]
        }
        run_items: dict[str, Item] = {}
        run_keys = [{"pk": pk, "sk": sk} for pk, sk in by_key]
        table = f"{self.name}-runs"
        for first in range(0, len(run_keys), _KEYS_A_READ):
            request: Any = {table: {"Keys": [to_wire(key) for key in run_keys[first : first + _KEYS_A_READ]]}}
            while request:
                answer = self._dynamodb.batch_get_item(RequestItems=request)
                for wire in answer["Responses"][table]:
                    item = from_wire(wire)
                    run_items[by_key[(item["pk"], item["sk"])]] = item
                request = answer.get("UnprocessedKeys")
        return run_items

    def missed_ranges(self, job: Job) -> list[tuple[int, int]]:
        """The spans of missed fire times, one per record."""
        items = self._table("runs").query(Query(keys.runs_of_job(job.tenant, job.job_id)))
        return [(item["skipped_from_at"], item["fire_at"]) for item in items if "skipped_from_at" in item]

    def target_log(self, since: float) -> Iterator[Any]:
        """The sample target's log events since this time."""
        return self.log_of(self.target_name, since)

    def log_of(self, function: str, since: float) -> Iterator[Any]:
        """A function's log events since this time; none before it has logged."""
        pages = self._logs.get_paginator("filter_log_events").paginate(
            logGroupName=f"/aws/lambda/{function}", startTime=int(since * 1000)
        )
        with suppress(self._logs.exceptions.ResourceNotFoundException):
            for page in pages:
                yield from page["events"]
