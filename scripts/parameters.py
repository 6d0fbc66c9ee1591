"""The parameters of a deployment: read from serverless.yml and the command line, and checked before they reach AWS."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml

from common.config import EMBEDDED_STAGES, OFF, Config
from common.errors import InvalidInput
from minute8.api.auth.tokens import TokenSettings
from scripts.build_layer import ROOT

_RETENTIONS: Final = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)
_KMS_KEY: Final = r"arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/[\w-]+"
_TOPIC: Final = r"arn:aws[\w-]*:sns:[\w-]+:\d{12}:[\w-]+"
# As the value of a text, this is a slip.
_MEANT_AS_OFF: Final = ("none", "null", "false", "no", "disabled")


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter accepts, in words, and which texts these are; of a list, each of them."""

    accepted: str
    is_valid: Callable[[str], object] = bool
    is_optional: bool = False
    is_list: bool = False
    # What it does, for docs/deploying.md.
    meaning: str = ""

    def about(self, meaning: str) -> Parameter:
        """The same, with what it does."""
        return replace(self, meaning=meaning)

    @property
    def words(self) -> str:
        """What it accepts, in words."""
        return f"{self.accepted}, or {OFF}" if self.is_optional else self.accepted

    def refusal(self, name: str, value: str) -> str | None:
        """Why the value is none; None if it is one."""
        if self.is_optional and value == OFF:
            return None
        if self.is_list:
            wrong = (f"{name}: {text!r} is not valid" for text in value.split(",") if not self.is_valid(text))
            wrong_text = next(wrong, None)
            return wrong_text and f"{wrong_text}; accepted: {self.words}"
        return None if self.is_valid(value) else f"{name}={value} is not valid; accepted: {self.words}"


def _words(*words: str) -> Parameter:
    return Parameter(", ".join(words), words.__contains__)


def _integer(least: int, most: int, *, is_optional: bool = False) -> Parameter:
    def is_within(value: str) -> bool:
        return value.isdecimal() and least <= int(value) <= most

    return Parameter(f"a whole number from {least} to {most}", is_within, is_optional)


def _share(least: float, most: float) -> Parameter:
    def is_within(value: str) -> bool:
        try:
            return least <= float(value) <= most
        except ValueError:
            return False

    return Parameter(f"a number from {least} to {most}", is_within)


def _text(pattern: str = ".+", accepted: str = "a value", *, is_list: bool = False) -> Parameter:
    """A text that can be off. In place of the word for that, another one is a slip."""
    matches = re.compile(pattern, re.ASCII).fullmatch
    return Parameter(
        accepted, lambda value: value.lower() not in _MEANT_AS_OFF and matches(value), True, is_list
    )


_ANY: Final = Parameter("a value")
_MEMORY: Final = _integer(128, 10_240)
_ON_OR_OFF: Final = _words("true", OFF)
_BUCKET: Final = _text(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "the name of a bucket of S3")
# A new table provides 12,000 and 4,000 anyway; more than 40,000 needs a higher account quota.
_UNITS: Final = _integer(5, 40_000, is_optional=True)

# Each parameter of serverless.yml, which has the defaults: what it accepts, and what it does.
# `python -m scripts.tables` writes them into docs/deploying.md.
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "logLevel": _words("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL").about("of the functions"),
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
    "logRetentionInDays": _words(*map(str, _RETENTIONS)).about(
        "of the functions' logs and of the access log"
    ),
    "platformLogLevel": _words("DEBUG", "INFO", "WARN").about(
        "of Lambda's own lines. With `INFO` each invocation logs its start, its end and its duration "
        "([idle-cost.md](idle-cost.md#logs))"
    ),
    "apiAccessLog": _ON_OR_OFF.about(
        "a line for each request in `/aws/http-api/minute8-<stage>`: time, origin, method, path, status, latency; no "
        "key and no query. `off`: none"
    ),
    "savedQueries": _ON_OR_OFF.about(
        "queries of CloudWatch Logs Insights (`deploy/queries.yml`). `off`: none"
    ),
    "plainHttpTargets": _ON_OR_OFF.about(
        "`true`: HTTP targets may be http (`loopback` is for the embedded AWS, and refused here)"
    ),
    "canary": _ON_OR_OFF.about(
        "a job of Minute8's own, each minute, and an alarm when it does not run. `off`: none, as in the stage `test`"
    ),
    "dashboards": _ON_OR_OFF.about("two CloudWatch dashboards. `off`: none, as in the stage `dev`"),
    "pointInTimeRecovery": _words("true", "false").about(
        "whether the tables can be brought back to an earlier instant; off in `dev`"
    ),
    "deletionProtection": _words("true", "false").about(
        "whether the tables resist deletion; set after a first success, off in `dev`"
    ),
    "deletionPolicy": _words("RetainExceptOnCreate", "Retain", "Delete").about(
        "what becomes of the tables when the stack goes; `Delete` in `dev`"
    ),
    "schedulerMemoryMb": _MEMORY.about("the scheduler's memory, and with it its share of a processor"),
    "plannerMemoryMb": _MEMORY.about("a planner's memory"),
    "executorMemoryMb": _MEMORY.about(
        "the executor's memory ([figures](performance.md#strict-lateness)). It needs 80 MB, and 145 for ten payloads "
        "of 128 KB with answers of 6 MB; with less than the default, a batch is late by more and costs as much"
    ),
    "apiMemoryMb": _MEMORY.about("the API's memory ([figures](decisions/reading.md#0044-looks-compute))"),
    "notifierMemoryMb": _MEMORY.about("the notifier's memory"),
    "executorTimeoutS": _integer(5, 900).about(
        "the executor's time limit (at most 900), and so a job's. A message stays hidden for a fifth longer"
    ),
    "plannerShareEntries": _integer(1, 1_000_000).about(
        "a tick with more due entries than this in its window divides them among planner invocations, this many each"
    ),
    "packFrom": _integer(0, 1_000_000).about(
        "a second with more executions than this in a share is crowded: they travel in packs of up to ten a message, "
        "and wakes start executors five seconds before ([capacity.md](capacity.md#capacity)). `0`: never. A higher "
        "value is never earlier and costs more ([decision 0005](decisions/planning.md#0005-packs-and-wakes))"
    ),
    "spreadS": _integer(0, 3_600).about(
        "jobs that name no second are due within so many seconds, unless their tenant has its own `spread_s` "
        "([tenants.md](tenants.md))"
    ),
    "dailyReportHour": _integer(0, 23).about("the hour (UTC) up to which the daily report counts"),
    "accountConcurrency": _integer(10, 1_000_000).about(
        "the account's quota of concurrent executions in the region, for the alarm `concurrency`; `make deploy` reads"
        " it from the account"
    ),
    "maxReceiveCount": _integer(1, 1_000).about(
        "deliveries before a message goes to the dead-letter queue; throttled polls count. A failed message comes "
        "again after 2 s, 4 s and so on, up to 900 s: thirty deliveries take over four hours"
    ),
    "apiThrottleRate": _integer(1, 10_000).about(
        "requests to the API a second; above, API Gateway answers 429"
    ),
    "apiThrottleBurst": _integer(1, 5_000).about(
        "requests to the API at once; above, API Gateway answers 429"
    ),
    "apiReservedConcurrency": _integer(1, 10_000, is_optional=True).about(
        "the API's own part of the account's concurrency, and its maximum. `make deploy` gives it a tenth of an "
        "account of 1,000 or more, except in `dev` ([below](#own-concurrency))"
    ),
    "executorReservedConcurrency": _integer(1, 10_000, is_optional=True).about(
        "the executor's own part of the account's concurrency, and its maximum. `make deploy` gives it half of an "
        "account of 1,000 or more, except in `dev` ([below](#own-concurrency))"
    ),
    "maximumConcurrency": _integer(2, 1_000, is_optional=True).about(
        "at most so many executor invocations at once, and at most what there is. `off`: Lambda's own limit"
    ),
    "minimumPollers": _integer(2, 200, is_optional=True).about(
        "provisioned pollers, at least; give both. They answer a burst within seconds and replace "
        "`maximumConcurrency`"
    ),
    "maximumPollers": _integer(2, 2_000, is_optional=True).about("provisioned pollers, at most"),
    "leastUnits": _UNITS.about(
        "provisioned billing with auto scaling for the jobs and the runs table, from so many units a second; give "
        "both. Cheaper for a steady load ([idle-cost.md](idle-cost.md#provisioned-billing))"
    ),
    "mostUnits": _UNITS.about("provisioned billing, up to so many units a second"),
    "warmReads": _integer(12_000, 40_000, is_optional=True).about(
        "warm throughput, units a second: reads of the jobs and tenants tables. Paid once; can be raised, never "
        "lowered ([capacity.md](capacity.md#capacity))"
    ),
    "warmWrites": _integer(4_000, 40_000, is_optional=True).about(
        "warm throughput, units a second: writes of the runs table. Paid once; can be raised, never lowered"
    ),
    "serviceLatenessS": _share(0.1, 3_600).about(
        "a good execution starts within so many seconds ([service-levels.md](service-levels.md))"
    ),
    "serviceObjective": _share(0.5, 0.99999).about("the share of good executions that is the objective"),
    "otlpRatio": _share(0, 1).about("the share of runs with spans"),
    # The default names the deployment's own account and region in CloudFormation's way.
    "targetArns": Parameter(
        "ARNs, comma-separated",
        re.compile(r"arn:(aws[\w-]*|\$\{AWS::Partition\}):[\w-]+:[\w*${}:-]*:[^\s,]+").fullmatch,
        is_list=True,
    ).about(
        "what the executor may call: functions, queues, topics, buses, state machines, roles that it may assume "
        "([targets.md](targets.md)). By default every function of the account and region"
    ),
    "outcomeSenders": _text(
        r"\d{12}|arn:aws[\w-]*:iam::\d{12}:(root|role/[\w+=.@/-]+)",
        "account ids and ARNs of roles, comma-separated",
        is_list=True,
    ).about(
        "account ids and ARNs of roles that may send outcomes of `Event` runs, beside this account's roles "
        "([targets.md](targets.md))"
    ),
    "registrationRules": _text(
        r"arn:aws[\w-]*:events:[\w*-]+:(\d{12}|\*):rule/[\w*./-]+",
        "ARNs of rules of EventBridge, comma-separated",
        is_list=True,
    ).about("ARNs (with `*`) of rules of EventBridge that may [register jobs by event](#jobs-by-event)"),
    "scheduleGroupMetrics": _text(
        r"[A-Za-z0-9._-]{1,64}/[0-9a-zA-Z-_.]{1,64}", "acme/billing,acme/default", is_list=True
    ).about(
        "groups of [EventBridge's API](eventbridge.md#metrics-and-audit) with metrics of their own, at most 100: "
        "`acme/billing,acme/default`"
    ),
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    "runsExport": _BUCKET.about(
        "a bucket of yours, to which each hour the runs of past days go ([history.md](history.md))"
    ),
    "auditExport": _BUCKET.about(
        "a bucket of yours with object lock, to which each hour the [hashes of the audit](audit.md) go"
    ),
    "kmsKeyArn": _text(_KMS_KEY, "the ARN of a key of KMS in the stage's region").about(
        "a key of KMS that encrypts tables, queues and logs ([below](#a-key-of-your-own))"
    ),
    "secretsKey": _text(rf"own|{_KMS_KEY}", "own, the ARN of a key of KMS in the stage's region").about(
        "`own`: a key of KMS for tenants' [secrets](targets.md#secrets) and [webhook "
        "secrets](targets.md#https-endpoints), $1 a month and $0.03 for each executor that is always warm; or the ARN"
        " of yours. Without their key, stored secrets cannot be read, and `http` calls and webhooks wait "
        "(`NotSigned`): a production stage keeps its own"
    ),
    "alarmTopicArn": _text(rf"{_TOPIC}(\.fifo)?", "the ARN of an SNS topic").about(
        "the SNS topic that the alarms notify"
    ),
    # No e-mail address can subscribe to a FIFO topic.
    "dailyReportTopicArn": _text(_TOPIC, "the ARN of a standard SNS topic").about(
        "a topic of SNS that gets [a report of each day](service-levels.md#a-report-of-each-day)"
    ),
    # http only to an extension in the function's own environment: the headers are secret.
    "otlpEndpoint": _text(
        r"(https://|http://(localhost|127\.0\.0\.1)(?=[:/]|\Z))[\w.:/-]*",
        "an address that begins with https:// (or http://localhost)",
    ).about("a collector that gets [spans](service-levels.md#spans)"),
    "otlpHeaders": _text(
        r"(/[\w.-]+)+", "the name of a parameter of SSM, such as /minute8/prod/otlp-headers"
    ).about("the SecureString of SSM with the collector's headers, `name=value,…`"),
    # What else is accepted of these, the API's own settings say (_bad_tokens).
    "jwtIssuer": _text().about("the exact `iss` of the tokens; `off`: tokens are not accepted"),
    "jwtAudience": _text().about(
        "the `aud` of tokens that are meant for this API, or several, comma-separated; required with `jwtIssuer`"
    ),
    "jwtRoleClaim": _text().about(
        "the claim that names the role: a text, a list of texts (groups), or the words of `scope` and `scp`"
    ),
    "jwksUrl": _text().about(
        "the address of the issuer's keys; `off`: what `<jwtIssuer>/.well-known/openid-configuration` says. Always "
        "https"
    ),
    "jwtConsoleClient": _text().about(
        "the id of a public client at the issuer: the console offers its "
        "[sign-in](decisions/platform.md#0048-sign-in-at-the-issuer). Register `https://…/console` to return to, and "
        "allow this origin at the token endpoint. If the ID token is meant for the API, `jwtAudience` names this "
        "client too"
    ),
    "jwtTenantClaim": _ANY.about("the claim that holds the tenant's id, as text, such as `custom:tenant_id`"),
    "jwtRoles": _ANY.about(
        "which value means which role: `viewers=read,platform-team=admin`. The highest counts"
    ),
    "jwtDefaultRole": _ANY.about("the role of a token that names none; `none` refuses such a token"),
    "jwtAlgorithms": _ANY.about(
        "comma-separated, of `RS256` `RS384` `RS512` `PS256` `PS384` `PS512` `ES256` `ES384` `ES512` `EdDSA`"
    ),
    "jwtConsoleScope": _ANY.about("the scopes that the console asks for"),
    "apiPathPrefix": _text().about(
        "what a proxy of yours takes off the path, where clients of [AWS's API](eventbridge.md#key-pairs) sign the "
        "whole path"
    ),
    "runbookUrl": _ANY.about(
        "the beginning of the page's address in an alarm's description, such as "
        "`https://git.example.com/minute8/blob/main/docs/runbook`"
    ),
    "layerPath": _ANY.about("where the layer is; `serverless deploy` builds it"),
    "jwtLayerPath": _ANY.about("where the layer for tokens is"),
    "otlpLayerPath": _ANY.about("where the layer for spans is"),
}
# Each parameter that can be off.
OPTIONAL: Final = frozenset(
    name
    for name, parameter in PARAMETERS.items()
    if parameter.is_optional or parameter.accepted == _ON_OR_OFF.accepted
)
# Those of signed tokens; the settings of the API have the same names.
OF_TOKENS: Final = frozenset(name for name in PARAMETERS if name.startswith("jw") and "Path" not in name)
# Each has three metrics, which CloudWatch sells.
_MAX_GROUP_METRICS: Final = 100
_STAGE: Final = re.compile(r"[a-z][a-z0-9-]{0,19}\Z")


def read(stage: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """All parameters of a stage, as text: the defaults, then the stage's, then these overrides."""
    params = _stored()
    merged = {**params["default"], **params.get(stage, {}), **overrides}
    # PyYAML reads an unquoted `off` as false; osls does not.
    return {
        name: OFF if value is False and name in OPTIONAL else _yaml_text(value)
        for name, value in merged.items()
        if not isinstance(value, dict)
    }


def chosen(stage: str, overrides: Mapping[str, str]) -> frozenset[str]:
    """The parameters that the stage has in `serverless.yml`, and the overrides. They can be off, too."""
    return frozenset(_stored().get(stage, {})) | overrides.keys()


def _stored() -> Mapping[str, Mapping[str, Any]]:
    params: Mapping[str, Mapping[str, Any]] = yaml.safe_load((ROOT / "serverless.yml").read_text())["params"]
    return params


def given_in(arguments: Sequence[str]) -> dict[str, str]:
    """The values of `--param name=value` and `--param=name=value`, as in osls. Raises ValueError."""
    given_values: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name != "--param":
            continue
        text = (value if equals else next(rest, "")).strip("\"'")
        parameter, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--param wants name=value, not {text!r}")
        if not value:
            raise ValueError(
                f"--param {parameter}= has no value; accepted: {parameter}={OFF} where it can be off"
            )
        given_values[parameter] = value
    return given_values


def pairs(params: Mapping[str, str]) -> list[str]:
    """`name=value` of each."""
    return [f"{name}={value}" for name, value in sorted(params.items())]


def arguments_of(params: Mapping[str, str]) -> list[str]:
    """What osls takes for these parameters."""
    return [f"--param={pair}" for pair in pairs(params)]


def refusals(stage: str, osls_options: Sequence[str]) -> list[str]:
    """What is wrong with a stage and the parameters on the command line, one sentence each."""
    try:
        return problems(stage, read(stage, given_in(osls_options)))
    except ValueError as error:
        return [str(error)]


def problems(stage: str, params: Mapping[str, str]) -> list[str]:
    """What AWS would refuse or what could not work, one sentence each. Pure."""
    if stage in EMBEDDED_STAGES:  # they name layers of this machine and a fixed API id
        return [f"stage {stage!r} is for the embedded AWS alone; accepted: dev, or a name of your own"]
    return [*_problems(params), *stage_problems(stage)]


def stage_problems(stage: str) -> list[str]:
    """What is wrong with the name of a stage. Pure."""
    if _STAGE.match(stage):
        return []
    return [f"stage {stage!r} is not valid; accepted: a-z, 0-9 and -, at most 20, a letter first"]


def _problems(params: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(params.keys() - PARAMETERS.keys()):
        near = difflib.get_close_matches(name, PARAMETERS, n=1)
        meant = f"did you mean {near[0]}?" if near else "docs/deploying.md lists them"
        yield f"{name}: there is no such parameter; {meant}"
    for name, parameter in PARAMETERS.items():
        if refusal := parameter.refusal(name, params[name]):
            yield refusal
    yield from _bad_pairs(params)
    if (count := len(params["scheduleGroupMetrics"].split(","))) > _MAX_GROUP_METRICS:
        yield f"scheduleGroupMetrics names {count} groups; accepted: at most {_MAX_GROUP_METRICS}"
    yield from _bad_tokens(params)


def _bad_pairs(params: Mapping[str, str]) -> Iterator[str]:
    for least_name, most_name in (("minimumPollers", "maximumPollers"), ("leastUnits", "mostUnits")):
        pair = [params[least_name], params[most_name]]
        if pair.count(OFF) == 1:
            yield f"{least_name} and {most_name}: give both or none"
        elif all(map(str.isdecimal, pair)) and int(pair[0]) > int(pair[1]):
            yield f"{least_name}={pair[0]} is more than {most_name}={pair[1]}"


def _bad_tokens(params: Mapping[str, str]) -> Iterator[str]:
    """What the API would say of the settings of signed tokens, at each request."""
    texts = {name: "" if value == OFF else value for name, value in params.items() if name in OF_TOKENS}
    given_texts = [name for name in sorted(texts) if texts[name] and PARAMETERS[name].is_optional]
    if given_texts and not texts["jwtIssuer"]:
        yield f"jwtIssuer: it must be given with {given_texts[0]}"
        return
    environment = {re.sub("([A-Z])", r"_\1", name).upper(): value for name, value in texts.items()}
    try:
        TokenSettings.of(Config.from_env(environment))
    except InvalidInput as error:
        yield str(error)


def _yaml_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
