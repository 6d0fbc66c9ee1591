"""The functions, and what their roles allow.

A deployment of an unchanged template does not put back what was changed by hand: CloudFormation compares templates, and
not what exists. So the doctor puts a role's policies back, as the template of the deployed stack has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from common.platform.findings import (
    DEPLOY,
    RESTORE,
    Finding,
    Repair,
    failed,
    not_checked,
    ok,
    repairable,
    warning,
)
from common.platform.tenants import Tenants
from common.storage import keys
from common.storage.table import Query
from common.version import VERSION
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import FEEDS, FUNCTIONS, RUNTIME
from minute8.cli.doctor.policies import allowances, restoring
from minute8.cli.doctor.template import DeployedTemplate, NoStackError

# Lambda reads a queue with five batches at once before it scales; the API's is what a few clients need.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
_CONCURRENT_EXECUTIONS: Final = {"scheduler": 1, "planner": 5, "executor": 5, "outcomes": 5, "api": 4}
_INVOKES_PER_POLLER: Final = 10
# https://docs.aws.amazon.com/lambda/latest/dg/tenant-isolation-troubleshooting.html
ENVIRONMENTS_PER_1000: Final = 2_500
_NEAR_PERCENT: Final = 80
# Some seconds of reading.
_MAX_TENANTS_READ, _MAX_JOBS_READ = 25_000, 50_000


def function(deployment: Deployment, name: str) -> Iterator[Finding]:
    """Whether it exists, accepts invocations, and runs the latest deployment."""
    configuration = deployment.function(name)
    if configuration is None:
        yield failed(f"there is no function {deployment.named(name)}", RESTORE)
        return
    if configuration["State"] == "Failed":
        yield failed(f"it takes no invocations: {configuration.get('StateReason', 'state Failed')}", DEPLOY)
    elif configuration["State"] != "Active":
        yield warning(
            f"it is {configuration['State'].lower()}: its next invocation waits", "look again in a minute"
        )
    update = configuration.get("LastUpdateStatus", "Successful")
    if update == "Failed":
        reason = configuration.get("LastUpdateStatusReason", "no reason is given")
        yield failed(f"its last update failed, so it runs what was there before: {reason}", DEPLOY)
    elif update != "Successful":
        yield warning("its update is under way", "look again in a minute")
    if configuration["Runtime"] != RUNTIME:
        yield warning(f"it runs on {configuration['Runtime']} instead of {RUNTIME}", DEPLOY)
    reserved = (
        deployment.client("lambda")
        .get_function_concurrency(FunctionName=deployment.named(name))
        .get("ReservedConcurrentExecutions")
    )
    yield from _reserved_too_little(deployment, name, reserved)
    yield from _believed_timeout(deployment, configuration)
    if name == "executor":
        yield from _recursion(deployment)
    limit = f", at most {reserved} at once" if reserved else ""
    memory_mb, timeout_s = configuration["MemorySize"], configuration["Timeout"]
    yield ok(f"active, {configuration['Runtime']}, {memory_mb} MB, {timeout_s} s{limit}")


def _reserved_too_little(deployment: Deployment, name: str, reserved: int | None) -> Iterator[Finding]:
    """Whether a function may run as often at once as it is asked to. A person may reserve more than the template."""
    requested = _requested_concurrency(deployment, name)
    if reserved is None or reserved >= requested:
        return
    deployed = _deployed_reservation(deployment, name)
    if deployed and name == "executor":  # whatever the template says, its mapping starts as many
        deployed = max(deployed, requested)
    if reserved == deployed:
        return
    named, client = deployment.named(name), deployment.client("lambda")
    if deployed:
        command = f"aws lambda put-function-concurrency --function-name {named}"
        command += f" --reserved-concurrent-executions {deployed}"
        repair = Repair(
            command,
            lambda: client.put_function_concurrency(
                FunctionName=named, ReservedConcurrentExecutions=deployed
            ),
        )
    else:
        command = f"aws lambda delete-function-concurrency --function-name {named}"
        repair = Repair(command, lambda: client.delete_function_concurrency(FunctionName=named))
    if reserved == 0:
        yield failed("its reserved concurrency is 0: it is switched off", command, repair)
        return
    yield warning(
        f"its reserved concurrency is {reserved}, and up to {requested} of it start at once:"
        " they are throttled and executions late",
        command,
        repair,
    )


def _deployed_reservation(deployment: Deployment, name: str) -> int | None:
    """What the template reserves for a function. None: nothing, or there is no template."""
    try:
        template = DeployedTemplate(deployment)
    except NoStackError:
        return None
    for resource in template.resources():
        if (resource.type, resource.physical_id) == ("AWS::Lambda::Function", deployment.named(name)):
            reserved = resource.properties.get("ReservedConcurrentExecutions")
            return None if reserved is None else int(reserved)
    return None


def _recursion(deployment: Deployment) -> Iterator[Finding]:
    """Whether the executor may send to its own queue. If not, Lambda stops a backfill or a retry after 16 rounds."""
    name = deployment.named("executor")
    answer = deployment.client("lambda").get_function_recursion_config(FunctionName=name)
    if answer["RecursiveLoop"] != "Allow":
        allow = f"aws lambda put-function-recursion-config --recursive-loop Allow --function-name {name}"
        put = deployment.client("lambda").put_function_recursion_config
        yield failed(
            "Lambda stops it after 16 rounds through its queue: its RecursiveLoop is not Allow",
            allow,
            Repair(allow, lambda: put(FunctionName=name, RecursiveLoop="Allow")),
        )


def _believed_timeout(deployment: Deployment, configuration: dict[str, object]) -> Iterator[Finding]:
    """Whether a function knows the executor's time limit, which decides which time limits of jobs it accepts."""
    environment = configuration.get("Environment", {})
    assert isinstance(environment, dict)
    believed = environment.get("Variables", {}).get("EXECUTOR_TIMEOUT_S")
    executor = deployment.function("executor") if believed else None
    if executor and int(believed) > executor["Timeout"]:
        yield failed(
            f"it takes the executor's time limit for {believed} s, and it is {executor['Timeout']} s:"
            " longer calls are cut off",
            DEPLOY,
        )


def version(deployment: Deployment) -> Iterator[Finding]:
    """Whether all functions run one deployment, the last one, and whether this command is of its version."""
    deployed: dict[str, list[str]] = {}
    deployments: dict[str, list[str]] = {}
    rolled_back: list[str] = []
    for name in FUNCTIONS:
        if configuration := deployment.function(name):
            variables = configuration.get("Environment", {}).get("Variables", {})
            deployed.setdefault(variables.get("VERSION", "none"), []).append(name)
            deployments.setdefault(variables.get("DEPLOYMENT", ""), []).append(name)
            if variables.get("DEPLOYMENT", "") != deployment.latest(name).get("DEPLOYMENT", ""):
                rolled_back.append(name)
    if len(deployments) > 1:
        runs = "; ".join(f"{', '.join(names)}: {digest or 'none'}" for digest, names in deployments.items())
        yield failed(f"the functions run different deployments: {runs}", DEPLOY)
    elif rolled_back:
        yield warning(
            f"{', '.join(rolled_back)} run an earlier deployment than the stack's: they were rolled back",
            "`make deploy` goes forward",
        )
    if len(deployed) > 1:
        versions = "; ".join(f"{', '.join(names)}: {number}" for number, names in deployed.items())
        yield failed(f"the functions run different versions: {versions}", DEPLOY)
    elif deployed and VERSION not in deployed:
        yield warning(
            f"the deployment's version is {next(iter(deployed))}, this command's is {VERSION}",
            "deploy this version, or install the command of that one: docs/upgrading.md",
        )
    yield ok(f"{VERSION}, here and there")


def concurrency(deployment: Deployment) -> Iterator[Finding]:
    """Whether the account's concurrency is enough for the stage's parameters. A new account can have 10."""
    client = deployment.client("lambda")
    limit = client.get_account_settings()["AccountLimit"]
    needed = 0
    for name in _CONCURRENT_EXECUTIONS:
        if deployment.function(name) is None:
            continue
        own = client.get_function_concurrency(FunctionName=deployment.named(name))
        if own.get("ReservedConcurrentExecutions") is None:
            needed += _requested_concurrency(deployment, name)
    account, common = limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"]
    if common < needed:
        yield warning(
            f"the functions of this stage can use {needed} of the account's concurrency at once, and of its {account}"
            f" only {common} are not reserved: calls are throttled and executions late",
            "ask AWS for a higher quota of Lambda's concurrent executions, or lower maximumConcurrency",
        )
    yield from _environments_of_tenants(deployment, account * ENVIRONMENTS_PER_1000 // 1_000)
    yield ok(f"{account} in the account, {common} not reserved; this stage asks for {needed}")


def _environments_of_tenants(deployment: Deployment, most: int) -> Iterator[Finding]:
    """Whether functions that isolate their tenants come near the environments that the account can have for them."""
    isolating = set(_isolating_functions(deployment.client("lambda")))
    tables, near, jobs_read = deployment.tables(), most * _NEAR_PERCENT // 100, 0
    tenant_ids = list(Tenants(tables.tenants).ids(_MAX_TENANTS_READ)) if isolating else []
    if len(tenant_ids) * len(isolating) < max(1, near):
        return
    called: set[tuple[str, str]] = set()
    for tenant_id in tenant_ids:
        query = Query(tenant_id, sk_prefix=keys.JOB_PREFIX, attributes=("spec",), consistent=False)
        for item in tables.jobs.query(query):
            jobs_read += 1
            function = _isolating_target(item.get("spec"))
            called |= {(tenant_id, function)} if function in isolating else set()
            if jobs_read == _MAX_JOBS_READ:
                break
        if jobs_read == _MAX_JOBS_READ:
            break
    if len(called) >= near:
        at_least = "" if jobs_read < _MAX_JOBS_READ and len(tenant_ids) < _MAX_TENANTS_READ else "at least "
        yield warning(
            f"jobs of tenants call functions that isolate their tenants, {at_least}{len(called)} pairs of tenant and"
            f" function; the account has room for {most} such environments, and throttles calls for the next one",
            "ask AWS for a higher quota of Lambda's concurrent executions, or spread the tenants over hours",
        )


def _isolating_functions(client: Any) -> Iterator[str]:
    """The ARNs of this account's functions that isolate their tenants."""
    page = client.list_functions()
    while True:
        for configuration in page["Functions"]:
            if (configuration.get("TenancyConfig") or {}).get("TenantIsolationMode") == "PER_TENANT":
                yield configuration["FunctionArn"]
        if not (marker := page.get("NextMarker")):
            return
        page = client.list_functions(Marker=marker)


def _isolating_target(spec: object) -> str:
    """The ARN of the function that a stored job calls, without version or alias; empty if it isolates no tenants."""
    if not isinstance(spec, str) or '"tenant_isolation":true' not in spec:
        return ""
    try:
        target = json.loads(spec)["target"]
        return ":".join(target["arn"].split(":")[:7]) if target["tenant_isolation"] is True else ""
    except (ValueError, KeyError, TypeError, AttributeError):  # damaged, or another text has these words
        return ""


def _requested_concurrency(deployment: Deployment, name: str) -> int:
    """How many of a function may be started at once: executors by their queue's mapping, if it has parameters."""
    if name != "executor":
        return _CONCURRENT_EXECUTIONS.get(name, 1)
    (feed,) = (feed for feed in FEEDS if feed.function == name)
    for mapping in deployment.mappings(feed):
        if maximum := mapping.get("ScalingConfig", {}).get("MaximumConcurrency"):
            return int(maximum)
        if pollers := mapping.get("ProvisionedPollerConfig", {}).get("MaximumPollers"):
            return _INVOKES_PER_POLLER * int(pollers)
    return _CONCURRENT_EXECUTIONS["executor"]


def permissions(deployment: Deployment, name: str) -> Iterator[Finding]:
    """Whether the role allows what the template gives it, by IAM's own simulator; boundaries and SCPs count too."""
    configuration = deployment.function(name)
    if configuration is None:
        yield failed(f"there is no function {deployment.named(name)}", RESTORE)
        return
    role = configuration["Role"].rpartition("/")[2]
    try:
        actions_by_arn = allowances(deployment, role)
    except NoStackError as error:
        actions_by_arn = {}
        yield not_checked(str(error))
    restore = restoring(deployment, role)
    for arn, actions in actions_by_arn.items():
        if refused := sorted(actions - allowed(deployment, configuration["Role"], sorted(actions), arn)):
            yield repairable(f"its role may not {', '.join(refused)} on {arn}", restore)
    if name == "executor":
        for own in FUNCTIONS:
            arn = deployment.function_arn(own)
            if allowed(deployment, configuration["Role"], ["lambda:InvokeFunction"], arn):
                yield repairable(f"tenants' jobs can call Minute8 itself: its role may invoke {arn}", restore)
    yield ok(f"its role may do all of its {sum(map(len, actions_by_arn.values()))} things")


def allowed(deployment: Deployment, role: str, actions: list[str], arn: str) -> set[str]:
    """The actions that the role may do to the resource."""
    answer = deployment.client("iam").simulate_principal_policy(
        PolicySourceArn=role, ActionNames=actions, ResourceArns=[arn]
    )
    return {
        result["EvalActionName"]
        for result in answer["EvaluationResults"]
        if result["EvalDecision"] == "allowed"
    }
