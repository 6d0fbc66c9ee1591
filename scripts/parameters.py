"""The parameters of a deployment: read from serverless.yml and the command line, and checked before they reach AWS."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

    def refusal(self, name: str, value: str) -> str | None:
        """Why the value is none; None if it is one."""
        if self.is_optional and value == OFF:
            return None
        accepted = f"{self.accepted}, or {OFF}" if self.is_optional else self.accepted
        if self.is_list:
            wrong = (f"{name}: {text!r} is not valid" for text in value.split(",") if not self.is_valid(text))
            wrong_text = next(wrong, None)
            return wrong_text and f"{wrong_text}; accepted: {accepted}"
        return None if self.is_valid(value) else f"{name}={value} is not valid; accepted: {accepted}"


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

# Each parameter of serverless.yml, which has the defaults; docs/deploying.md explains them.
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "logLevel": _words("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    # https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
    "logRetentionInDays": _words(*map(str, _RETENTIONS)),
    "platformLogLevel": _words("DEBUG", "INFO", "WARN"),
    "apiAccessLog": _ON_OR_OFF,
    "savedQueries": _ON_OR_OFF,
    "plainHttpTargets": _ON_OR_OFF,
    "canary": _ON_OR_OFF,
    "dashboards": _ON_OR_OFF,
    "pointInTimeRecovery": _words("true", "false"),
    "deletionProtection": _words("true", "false"),
    "deletionPolicy": _words("RetainExceptOnCreate", "Retain", "Delete"),
    "schedulerMemoryMb": _MEMORY,
    "plannerMemoryMb": _MEMORY,
    "executorMemoryMb": _MEMORY,
    "apiMemoryMb": _MEMORY,
    "notifierMemoryMb": _MEMORY,
    "executorTimeoutS": _integer(5, 900),
    "plannerShareEntries": _integer(1, 1_000_000),
    "packFrom": _integer(0, 1_000_000),
    "spreadS": _integer(0, 3_600),
    "dailyReportHour": _integer(0, 23),
    "accountConcurrency": _integer(10, 1_000_000),
    "maxReceiveCount": _integer(1, 1_000),
    "apiThrottleRate": _integer(1, 10_000),
    "apiThrottleBurst": _integer(1, 5_000),
    "apiReservedConcurrency": _integer(1, 10_000, is_optional=True),
    "executorReservedConcurrency": _integer(1, 10_000, is_optional=True),
    "maximumConcurrency": _integer(2, 1_000, is_optional=True),
    "minimumPollers": _integer(2, 200, is_optional=True),
    "maximumPollers": _integer(2, 2_000, is_optional=True),
    "leastUnits": _UNITS,
    "mostUnits": _UNITS,
    "warmReads": _integer(12_000, 40_000, is_optional=True),
    "warmWrites": _integer(4_000, 40_000, is_optional=True),
    "serviceLatenessS": _share(0.1, 3_600),
    "serviceObjective": _share(0.5, 0.99999),
    "otlpRatio": _share(0, 1),
    # The default names the deployment's own account and region in CloudFormation's way.
    "targetArns": Parameter(
        "ARNs, comma-separated",
        re.compile(r"arn:(aws[\w-]*|\$\{AWS::Partition\}):[\w-]+:[\w*${}:-]*:[^\s,]+").fullmatch,
        is_list=True,
    ),
    "outcomeSenders": _text(
        r"\d{12}|arn:aws[\w-]*:iam::\d{12}:(root|role/[\w+=.@/-]+)",
        "account ids and ARNs of roles, comma-separated",
        is_list=True,
    ),
    "registrationRules": _text(
        r"arn:aws[\w-]*:events:[\w*-]+:(\d{12}|\*):rule/[\w*./-]+",
        "ARNs of rules of EventBridge, comma-separated",
        is_list=True,
    ),
    "scheduleGroupMetrics": _text(
        r"[A-Za-z0-9._-]{1,64}/[0-9a-zA-Z-_.]{1,64}", "acme/billing,acme/default", is_list=True
    ),
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    "runsExport": _BUCKET,
    "auditExport": _BUCKET,
    "kmsKeyArn": _text(_KMS_KEY, "the ARN of a key of KMS in the stage's region"),
    "secretsKey": _text(rf"own|{_KMS_KEY}", "own, the ARN of a key of KMS in the stage's region"),
    "alarmTopicArn": _text(rf"{_TOPIC}(\.fifo)?", "the ARN of an SNS topic"),
    # No e-mail address can subscribe to a FIFO topic.
    "dailyReportTopicArn": _text(_TOPIC, "the ARN of a standard SNS topic"),
    # http only to an extension in the function's own environment: the headers are secret.
    "otlpEndpoint": _text(
        r"(https://|http://(localhost|127\.0\.0\.1)(?=[:/]|\Z))[\w.:/-]*",
        "an address that begins with https:// (or http://localhost)",
    ),
    "otlpHeaders": _text(
        r"(/[\w.-]+)+", "the name of a parameter of SSM, such as /minute8/prod/otlp-headers"
    ),
    # What else is accepted of these, the API's own settings say (_bad_tokens).
    "jwtIssuer": _text(),
    "jwtAudience": _text(),
    "jwtRoleClaim": _text(),
    "jwksUrl": _text(),
    "jwtConsoleClient": _text(),
    "jwtTenantClaim": _ANY,
    "jwtRoles": _ANY,
    "jwtDefaultRole": _ANY,
    "jwtAlgorithms": _ANY,
    "jwtConsoleScope": _ANY,
    "apiPathPrefix": _text(),
    "runbookUrl": _ANY,
    "layerPath": _ANY,
    "jwtLayerPath": _ANY,
    "otlpLayerPath": _ANY,
}
# Each parameter that can be off.
OPTIONAL: Final = frozenset(
    name for name, parameter in PARAMETERS.items() if parameter.is_optional or parameter is _ON_OR_OFF
)
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
    texts = {name: "" if value == OFF else value for name, value in params.items() if name.startswith("jw")}
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
