"""The configuration: read from the environment only here, into one frozen object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

# The stages of the embedded AWS. `scripts/deploy.py` refuses them on AWS.
EMBEDDED_STAGES = ("local", "test")
# What botocore reads. The embedded AWS has the API at the same address.
_AWS_ENDPOINT = "AWS_ENDPOINT_URL"

# The value of a parameter that is off. It is never empty: osls refuses `--param=canary=`.
OFF = "off"

# The alias by which each of a stage's functions is called (deploy/live.js).
LIVE = "live"


class MissingSetting(Exception):
    """The function is deployed without an environment variable that it needs."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of a function in its deployment. A value is empty if the function does not use it."""

    stage: str
    jobs_table: str
    due_table: str
    tenants_table: str
    runs_table: str
    executions_queue_url: str
    executor_timeout_s: int
    event_bus: str
    log_level: str
    plain_http_targets: bool
    # Only on the embedded AWS: HTTP targets may be on this machine.
    loopback_targets: bool
    planning_queue_url: str
    # An execution that starts later than this does not count as good (executor/recorder.py).
    service_lateness_s: float
    # Schedule groups of EventBridge's API that have metrics of their own: `acme/billing,acme/default`.
    schedule_group_metrics: str
    planner_share_entries: int
    # A second with more executions in a share is crowded (common/planning/packs.py); 0: none is.
    pack_from: int
    # Of the executor's pollers; empty: Lambda's default.
    maximum_concurrency: str
    maximum_pollers: str
    # The spread of jobs that name none, where the tenant has no default of its own.
    spread_s: int
    # What something in front of the API takes off the path: clients of the EventBridge endpoint sign the whole path.
    api_path_prefix: str
    # Where targets call back: the API's address.
    api_url: str
    # Where the API puts registrations by event that it refuses.
    registrations_dead_url: str
    # The bucket to which the exporter writes the runs of past days.
    runs_export: str
    # The bucket with object lock to which ticks write the seals over the audit.
    audit_export: str
    # The topic of SNS to which the notifier sends the daily report, and the hour (UTC) up to which it counts.
    daily_report_topic_arn: str
    daily_report_hour: int
    # The ARN of the key for tenants' secrets; empty: they can put none.
    secrets_key: str
    # The collector of OpenTelemetry, the parameter of SSM with its headers, and the share of runs that have spans.
    otlp_endpoint: str
    otlp_headers: str
    otlp_ratio: float
    # Signed tokens as an alternative to API keys (minute8/api/auth/tokens.py). Without an issuer none are accepted.
    jwt_issuer: str
    jwt_audience: str
    jwt_tenant_claim: str
    jwt_role_claim: str
    jwt_roles: str
    jwt_default_role: str
    jwt_algorithms: str
    jwks_url: str
    runbook_url: str
    jwt_console_client: str
    jwt_console_scope: str

    @classmethod
    def from_env(cls, variables: Mapping[str, str]) -> Config:
        """Read environment variables. Raises ValueError if one that must be a number is not."""
        env = {name: "" if value == OFF else value for name, value in variables.items()}
        return cls(
            stage=env.get("STAGE", "dev"),
            jobs_table=env.get("JOBS_TABLE", ""),
            due_table=env.get("DUE_TABLE", ""),
            tenants_table=env.get("TENANTS_TABLE", ""),
            runs_table=env.get("RUNS_TABLE", ""),
            executions_queue_url=env.get("EXECUTIONS_QUEUE_URL", ""),
            executor_timeout_s=int(env.get("EXECUTOR_TIMEOUT_S", "300")),
            event_bus=env.get("EVENT_BUS", ""),
            log_level=env.get("LOG_LEVEL", "INFO"),
            plain_http_targets=env.get("PLAIN_HTTP_TARGETS", "") in ("true", "loopback"),
            loopback_targets=env.get("PLAIN_HTTP_TARGETS", "") == "loopback"
            and env.get("STAGE") in EMBEDDED_STAGES,
            service_lateness_s=float(env.get("SERVICE_LATENESS_S", "1")),
            schedule_group_metrics=env.get("SCHEDULE_GROUP_METRICS", ""),
            planning_queue_url=env.get("PLANNING_QUEUE_URL", ""),
            planner_share_entries=int(env.get("PLANNER_SHARE_ENTRIES", "20000")),
            pack_from=int(env.get("PACK_FROM", "1")),
            maximum_concurrency=env.get("MAXIMUM_CONCURRENCY", ""),
            maximum_pollers=env.get("MAXIMUM_POLLERS", ""),
            spread_s=int(env.get("SPREAD_S", "0")),
            api_path_prefix=env.get("API_PATH_PREFIX", ""),
            api_url=_api_url(env),
            registrations_dead_url=env.get("REGISTRATIONS_DEAD_URL", ""),
            runs_export=env.get("RUNS_EXPORT", ""),
            audit_export=env.get("AUDIT_EXPORT", ""),
            daily_report_topic_arn=env.get("DAILY_REPORT_TOPIC_ARN", ""),
            daily_report_hour=int(env.get("DAILY_REPORT_HOUR", "6")),
            secrets_key=env.get("SECRETS_KEY", ""),
            otlp_endpoint=env.get("OTLP_ENDPOINT", ""),
            otlp_headers=env.get("OTLP_HEADERS", ""),
            otlp_ratio=float(env.get("OTLP_RATIO", "1")),
            jwt_issuer=env.get("JWT_ISSUER", ""),
            jwt_audience=env.get("JWT_AUDIENCE", ""),
            jwt_tenant_claim=env.get("JWT_TENANT_CLAIM", "tenant"),
            jwt_role_claim=env.get("JWT_ROLE_CLAIM", ""),
            jwt_roles=env.get("JWT_ROLES", ""),
            jwt_default_role=env.get("JWT_DEFAULT_ROLE", "read"),
            jwt_algorithms=env.get("JWT_ALGORITHMS", "RS256"),
            jwks_url=env.get("JWKS_URL", ""),
            runbook_url=env.get("RUNBOOK_URL", "docs/runbook"),
            jwt_console_client=env.get("JWT_CONSOLE_CLIENT", ""),
            jwt_console_scope=env.get("JWT_CONSOLE_SCOPE", "openid"),
        )

    @property
    def calls_at_once(self) -> int:
        """How many calls of targets the executor's parameters allow at once: ten for each concurrent batch.

        By default Lambda starts at most 1,250 batches at once; a poller has ten.
        https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
        """
        if self.maximum_pollers:
            return 100 * int(self.maximum_pollers)
        return 10 * int(self.maximum_concurrency or 1_250)

    def required(self, name: str) -> str:
        """A setting that the function needs. Raises MissingSetting."""
        value = getattr(self, name)
        if not value:
            raise MissingSetting(
                f"the environment variable {name.upper()} is not set; this function needs it"
            )
        return str(value)


def _api_url(env: Mapping[str, str]) -> str:
    """The address of the API. The embedded AWS has it on its own host, under the prefix."""
    of_aws = env.get(_AWS_ENDPOINT)
    if of_aws and env.get("STAGE") in EMBEDDED_STAGES:
        return f"{of_aws}{env.get('API_PATH_PREFIX', '')}"
    return env.get("API_URL", "")


@cache
def config() -> Config:
    """This process's configuration."""
    return Config.from_env(os.environ)
