"""The examined stage: its names, its ARNs, and clients with short time limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from common.clock import Clock
from common.config import LIVE
from common.planning.queue import ExecutionsQueue
from common.platform.dead_letters import DeadLetters
from common.platform.planning_checks import PlanningState
from common.registration.definition import as_written
from common.runs.unrecorded import Unrecorded
from common.storage.aws import new_session, on_first_use
from common.storage.table import Table, Tables
from common.truth.truth import Truth
from minute8.cli.doctor.inventory import FUNCTIONS, Feed
from minute8.cli.doctor.item_checks import ItemChecks

SERVICES: Final = (
    *("apigatewayv2", "cloudformation", "cloudwatch", "dynamodb", "events", "iam"),
    *("kms", "lambda", "logs", "s3", "sqs", "ssm", "sts"),
)


def _fetched(url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    return httpx.get(url, headers=headers, timeout=10)


@dataclass(frozen=True, slots=True)
class Deployment:
    """One stage in one region. `client` returns the client of a service; `api_url` is the API's address, if given."""

    stage: str
    partition: str
    region: str
    account: str
    client: Callable[[str], Any]
    clock: Clock
    api_url: str | None = None
    get: Callable[..., httpx.Response] = _fetched

    def named(self, part: str = "") -> str:
        """Such as minute8-prod-tick; without `part` the name of the stack and the bus."""
        return f"minute8-{self.stage}-{part}" if part else f"minute8-{self.stage}"

    def function_arn(self, function: str) -> str:
        return f"arn:{self.partition}:lambda:{self.region}:{self.account}:function:{self.named(function)}"

    def called_arn(self, function: str) -> str:
        """What mappings, rules and the API call: the alias, once a version is published."""
        has_alias = self._configuration(function, Qualifier=LIVE) is not None
        return self.function_arn(function) + (f":{LIVE}" if has_alias else "")

    def queue_arn(self, queue: str) -> str:
        return f"arn:{self.partition}:sqs:{self.region}:{self.account}:{self.named(queue)}"

    def function(self, function: str) -> Any:
        """The configuration that calls of a function meet; None if it does not exist."""
        return self._configuration(function, Qualifier=LIVE) or self._configuration(function)

    def latest(self, function: str) -> dict[str, str]:
        """The environment that the last deployment gave a function, whether it is called or not."""
        variables: dict[str, str] = (
            (self._configuration(function) or {}).get("Environment", {}).get("Variables", {})
        )
        return variables

    def _configuration(self, function: str, **qualifier: str) -> Any:
        client = self.client("lambda")
        try:
            return client.get_function_configuration(FunctionName=self.named(function), **qualifier)
        except client.exceptions.ResourceNotFoundException:
            return None

    def mappings(self, feed: Feed) -> list[Any]:
        """The event source mappings from a queue to a function or to its alias."""
        function = self.function_arn(feed.function)
        answer = self.client("lambda").list_event_source_mappings(EventSourceArn=self.queue_arn(feed.queue))
        return [
            mapping
            for mapping in answer["EventSourceMappings"]
            if mapping["FunctionArn"] in (function, f"{function}:{LIVE}")
        ]

    def queue(self, queue: str) -> dict[str, str] | None:
        """A queue's attributes; None if it does not exist."""
        client = self.client("sqs")
        try:
            url = client.get_queue_url(QueueName=self.named(queue))["QueueUrl"]
        except client.exceptions.QueueDoesNotExist:
            return None
        answer = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes: dict[str, str] = answer["Attributes"]
        return attributes

    def due_table(self) -> Table:
        return self.tables().due

    def tenants_table(self) -> Table:
        return self.tables().tenants

    def unrecorded(self) -> Unrecorded:
        return Unrecorded(self.due_table(), self.tables().runs)

    def tables(self) -> Tables:
        return Tables(lambda name: Table(self.client("dynamodb"), self.named(name), now=self.clock.now))

    def executions(self) -> ExecutionsQueue:
        """The executions queue; its address is looked up when something is sent."""
        return on_first_use(lambda: ExecutionsQueue(self.client("sqs"), self._executions_url(), self.clock))

    def dead_letters(self) -> DeadLetters:
        """The dead letters of all queues; their addresses are looked up when something is read."""
        return on_first_use(lambda: DeadLetters(self.client("sqs"), self._executions_url()))

    def _executions_url(self) -> str:
        return str(self.client("sqs").get_queue_url(QueueName=self.named("executions"))["QueueUrl"])

    def truth(self) -> Truth:
        tables = self.tables()
        return Truth(tables, self.executions(), self.clock, as_written, ItemChecks(tables, self.clock))

    def planning(self) -> PlanningState:
        return PlanningState(self.due_table(), self.clock, self.stage)

    def exists(self) -> bool:
        """Whether any function of the stage exists."""
        return any(self.function(function) for function in FUNCTIONS)


def connect(stage: str, clock: Clock, api_url: str | None = None) -> Deployment:
    """The stage in the account and region of your AWS credentials. Raises botocore's errors."""
    from botocore.config import Config

    session = new_session()
    config = Config(
        connect_timeout=3,
        read_timeout=5,
        retries={"mode": "standard", "total_max_attempts": 3},
        max_pool_connections=32,
    )
    # Build all of them now: a session can build only one client at a time, and the checks run in threads.
    clients: dict[str, Any] = {service: session.create_client(service, config=config) for service in SERVICES}
    identity = clients["sts"].get_caller_identity()
    return Deployment(
        stage,
        identity["Arn"].split(":")[1],
        clients["sts"].meta.region_name,
        identity["Account"],
        clients.__getitem__,
        clock,
        api_url,
    )
