"""The demo's actions: deploys the sample target, registers jobs, ticks, and reads runs, as a platform would."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3

from common.clock import SystemClock
from common.errors import AlreadyExists
from common.jobs.job import Job
from common.jobs.wiring import job_store
from common.planning.due_index import DueIndex, Mark
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue
from common.platform.tenants import Tenants
from common.registration.definition import Limits
from common.registration.registry import Registry
from common.storage import keys
from common.storage.deployed import Tables
from common.storage.tables import Item, Table
from common.storage.wire_format import from_wire, to_wire
from common.tenants.audit import AWS
from common.tenants.rules_cache import KnownTenants
from common.timing.instants import DAY_S
from scripts.demo.workload import Registration

_TARGET = Path(__file__).resolve().parents[2] / "examples" / "target" / "handler.py"
TARGET_NAME = "sample-target"
_WRITERS = 8
# What BatchGetItem takes: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_KEYS_A_READ = 100


class Stage:
    """A deployed stage of Minute8 on the embedded AWS, reached as any AWS client reaches it."""

    def __init__(self, env: dict[str, str], stage: str = "local") -> None:
        session = boto3.Session(
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
            region_name=env["AWS_REGION"],
        )
        endpoint = env["AWS_ENDPOINT_URL"]
        self._name = f"minute8-{stage}"
        self._dynamodb = session.client("dynamodb", endpoint_url=endpoint)
        self._lambda = session.client("lambda", endpoint_url=endpoint)
        self._iam = session.client("iam", endpoint_url=endpoint)
        self._logs = session.client("logs", endpoint_url=endpoint)
        self._sqs = session.client("sqs", endpoint_url=endpoint)
        self._clock = SystemClock()
        self.index = DueIndex(self._table("due"))
        url = self._sqs.get_queue_url(QueueName=f"{self._name}-executions")["QueueUrl"]
        queue = ExecutionsQueue(self._sqs, url, self._clock)
        tables = Tables(self._table)
        self.store = job_store(tables, queue, self._clock, KnownTenants(tables.tenants), by=AWS)
        self.registry = Registry(self.store, Limits.of_executor(self._executor_timeout_s()))

    def _table(self, name: str) -> Table:
        return Table(self._dynamodb, f"{self._name}-{name}")

    def _executor_timeout_s(self) -> int:
        return int(self._lambda.get_function_configuration(FunctionName=f"{self._name}-executor")["Timeout"])

    def deploy_target(self) -> str:
        """Create the sample target, if it is not there, and return its ARN."""
        try:
            return str(self._lambda.get_function(FunctionName=TARGET_NAME)["Configuration"]["FunctionArn"])
        except self._lambda.exceptions.ResourceNotFoundException:
            pass
        package = io.BytesIO()
        with zipfile.ZipFile(package, "w") as archive:
            archive.write(_TARGET, "handler.py")
        created = self._lambda.create_function(
            FunctionName=TARGET_NAME,
            Runtime="python3.13",
            Handler="handler.handle",
            Role=self._target_role(),
            Timeout=60,
            Code={"ZipFile": package.getvalue()},
        )
        return str(created["FunctionArn"])

    def _target_role(self) -> str:
        """A role that may only write its log."""
        trust = _policy("sts:AssumeRole", Principal={"Service": "lambda.amazonaws.com"})
        with suppress(self._iam.exceptions.EntityAlreadyExistsException):
            self._iam.create_role(RoleName=TARGET_NAME, AssumeRolePolicyDocument=trust)
        may_log = _policy(["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], Resource="*")
        self._iam.put_role_policy(RoleName=TARGET_NAME, PolicyName="logs", PolicyDocument=may_log)
        return str(self._iam.get_role(RoleName=TARGET_NAME)["Role"]["Arn"])

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

    def register(self, registrations: Sequence[Registration], done: Callable[[], None]) -> list[Job]:
        """Store all jobs; `done` is called after each, for a progress bar."""

        def put(registration: Registration) -> Job:
            job = self.registry.put(registration.tenant, registration.job_id, registration.definition)
            done()
            return job

        with ThreadPoolExecutor(_WRITERS) as pool:
            return list(pool.map(put, registrations))

    def registered(self, tenants: Iterable[str]) -> list[Job]:
        """The jobs of these tenants."""
        return [job for tenant in tenants for job in self.store.list_jobs(tenant, limit=10_000)]

    def mark(self) -> Mark | None:
        return self.index.mark()

    def tick(self) -> Any:
        """Call the scheduler function, as its rule does at minute 8."""
        answer = self._lambda.invoke(FunctionName=f"{self._name}-scheduler", Payload=b"{}")
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
        found: dict[str, Item] = {}
        wanted = [{"pk": pk, "sk": sk} for pk, sk in by_key]
        table = f"{self._name}-runs"
        for first in range(0, len(wanted), _KEYS_A_READ):
            request: Any = {table: {"Keys": [to_wire(key) for key in wanted[first : first + _KEYS_A_READ]]}}
            while request:
                answer = self._dynamodb.batch_get_item(RequestItems=request)
                for wire in answer["Responses"][table]:
                    item = from_wire(wire)
                    found[by_key[(item["pk"], item["sk"])]] = item
                request = answer.get("UnprocessedKeys")
        return found

    def missed_ranges(self, job: Job) -> list[tuple[int, int]]:
        """The spans of missed fire times, one per record."""
        items = self._table("runs").query(keys.runs_of_job(job.tenant, job.job_id))
        return [(item["skipped_from_at"], item["fire_at"]) for item in items if "skipped_from_at" in item]

    def target_log(self, since: float) -> Iterator[Any]:
        """The sample target's log events since this time."""
        request: dict[str, Any] = {
            "logGroupName": f"/aws/lambda/{TARGET_NAME}",
            "startTime": int(since * 1000),
        }
        while True:
            try:
                answer = self._logs.filter_log_events(**request)
            except self._logs.exceptions.ResourceNotFoundException:
                return
            yield from answer["events"]
            if not answer.get("nextToken"):
                return
            request["nextToken"] = answer["nextToken"]


def _policy(action: str | list[str], **fields: Any) -> str:
    statement = {"Effect": "Allow", "Action": action, **fields}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
