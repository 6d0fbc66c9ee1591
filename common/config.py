"""The configuration: read from the environment only here, into one frozen object."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    """The settings of a function in its deployment, each of the variable of its name in capitals."""

    stage: str = "dev"
    jobs_table: str = ""
    due_table: str = ""
    tenants_table: str = ""
    runs_table: str = ""
    executions_queue_url: str = ""
    executor_timeout_s: int = 300
    event_bus: str = ""
    log_level: str = "INFO"
    plain_http_targets: bool = False
    # Only on the embedded AWS: HTTP targets may be on this machine.
    loopback_targets: bool = False
    planning_queue_url: str = ""
    # An execution that starts later than this does not count as good (executor/recorder.py).
    service_lateness_s: float = 1.0
    # Schedule groups of EventBridge's API that have metrics of their own: `acme/billing,acme/default`.
    schedule_group_metrics: str = ""
    planner_share_entries: int = 20_000
    # A second with more executions in a share is crowded (common/planning/packs.py); 0: none is.
    pack_from: int = 1
    # Of the executor's pollers; empty: Lambda's default.
    maximum_concurrency: str = ""
    maximum_pollers: str = ""
    # The spread of jobs that name none, where the tenant has no default of its own.
    spread_s: int = 0
    # What something in front of the API takes off the path: clients of the EventBridge endpoint sign the whole path.
    api_path_prefix: str = ""
    # Where targets call back: the API's address.
    api_url: str = ""
    # Where the API puts registrations by event that it refuses.
    registrations_dead_url: str = ""
    # The bucket to which the exporter writes the runs of past days.
    runs_export: str = ""
    # The bucket with object lock to which ticks write the seals over the audit.
    audit_export: str = ""
    # The topic of SNS to which the notifier sends the daily report, and the hour (UTC) up to which it counts.
    daily_report_topic_arn: str = ""
    daily_report_hour: int = 6
    # The ARN of the key for tenants' secrets; empty: they can put none.
    secrets_key: str = ""
    # The collector of OpenTelemetry, the parameter of SSM with its headers, and the share of runs that have spans.
    otlp_endpoint: str = ""
    otlp_headers: str = ""
    otlp_ratio: float = 1.0
    # Signed tokens as an alternative to API keys (minute8/api/auth/tokens.py). Without an issuer none are accepted.
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_tenant_claim: str = "tenant"
    jwt_role_claim: str = ""
    jwt_roles: str = ""
    jwt_default_role: str = "read"
    jwt_algorithms: str = "RS256"
    jwks_url: str = ""
    runbook_url: str = "docs/runbook"
    jwt_console_client: str = ""
    jwt_console_scope: str = "openid"

    @classmethod
    def from_env(cls, variables: Mapping[str, str]) -> Config:
        """Read environment variables. Raises ValueError if one that must be a number is not."""
        env = {name: "" if value == OFF else value for name, value in variables.items()}
        settings = {
            name: type(default)(env[name.upper()])
            for name, default in asdict(cls()).items()
            if name.upper() in env
        }
        # `bool` of a text does not read it.
        settings |= {
            "plain_http_targets": env.get("PLAIN_HTTP_TARGETS", "") in ("true", "loopback"),
            "loopback_targets": env.get("PLAIN_HTTP_TARGETS", "") == "loopback"
            and env.get("STAGE") in EMBEDDED_STAGES,
            "api_url": _api_url(env),
        }
        return cls(**settings)

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
