"""Changes to ministack that each server gets: permissions, queries, archives and logs."""

from __future__ import annotations

import hashlib
import json
import queue
import re
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

Wire = Mapping[Any, Any]
# The last line that a worker logs of an invocation.
MARK: Final = "\x1eend of the log"
# The mark does not come if the handler has closed its standard error.
_MAX_WAIT_FOR_MARK_S: Final = 10.0
# What FilterLogEvents answers at most.
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html
_LOG_PAGE: Final = 10_000

# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-api-permissions-reference.html
# A DynamoDB transaction is checked part by part by the server itself, each part on its own table.
_AS_ON_AWS = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-iam.html
_STATEMENTS = ("dynamodb:ExecuteStatement", "dynamodb:BatchExecuteStatement")
_INSERTION = re.compile(r'\s*INSERT\s+INTO\s+"?(?P<table>[\w.-]+)"?\s', re.IGNORECASE)

# The server checks reading a function's reserved concurrency as setting it.
_READS_AS_ON_AWS = {"lambda:PutFunctionConcurrency": "lambda:GetFunctionConcurrency"}

# What a function does about loops is checked as reading or changing its code.
_RECURSION = {"GET": "lambda:GetFunctionRecursionConfig", "PUT": "lambda:PutFunctionRecursionConfig"}

# One alias is checked as the list of them.
_ALIAS = {"GET": "lambda:GetAlias", "PUT": "lambda:UpdateAlias", "DELETE": "lambda:DeleteAlias"}

# The key conditions of common/storage/table.py, for keys of text.
_CONDITION = re.compile(
    r"pk = (?P<pk>:\w+)"
    r"(?: AND begins_with\(sk, (?P<prefix>:\w+)\)| AND sk BETWEEN (?P<first>:\w+) AND (?P<last>:\w+))?"
)


def check_permissions_as_aws(iam_actions: Any) -> None:
    """Change ministack.core.iam_actions: it names permissions as AWS does.

    A batch needs the permission of its parts, and reading is not writing.
    """
    stock: Callable[..., str | None] = iam_actions.extract_iam_action

    def as_on_aws(service: str, method: str, path: str, *request: Any) -> str | None:
        if service == "lambda" and path.endswith("/recursion-config"):
            return _RECURSION.get(method)
        if service == "lambda" and "/aliases/" in path:
            return _ALIAS.get(method)
        action = stock(service, method, path, *request)
        if action and method == "GET":
            action = _READS_AS_ON_AWS.get(action, action)
        return _AS_ON_AWS.get(action, action) if action else action

    iam_actions.extract_iam_action = as_on_aws
    resource_of: Callable[..., str] = iam_actions.extract_resource_arn

    def named(
        service: str, method: str, path: str, headers: Any, body: bytes, query: Any, region: str, account: str
    ) -> str:
        """What only the request's body names: a new function, a rule of the default bus, and an event bus."""
        if service == "lambda" and method == "POST" and path.endswith("/functions"):
            return f"arn:aws:lambda:{region}:{account}:function:{json.loads(body)['FunctionName']}"
        if service == "events" and (name := _rule_or_bus(headers.get("x-amz-target", ""), json.loads(body))):
            return f"arn:aws:events:{region}:{account}:{name}"
        return resource_of(service, method, path, headers, body, query, region, account)

    iam_actions.extract_resource_arn = named
    conditions_of: Callable[..., dict[str, Any]] = iam_actions.request_tag_context

    def with_encryption_context(service: str, action: str, body: bytes, query: Any) -> dict[str, Any]:
        """The condition keys of a request; of a call of KMS also its encryption context."""
        context = json.loads(body).get("EncryptionContext", {}) if service == "kms" else {}
        keys = {f"kms:encryptioncontext:{name.lower()}": value for name, value in context.items()}
        return conditions_of(service, action, body, query) | keys

    iam_actions.request_tag_context = with_encryption_context
    transaction_checks: Callable[..., list[tuple[str, str]]] = iam_actions.dynamodb_transaction_checks

    def with_insertions(action: str, body: bytes, region: str, account: str) -> list[tuple[str, str]]:
        """The checks of each part of a request; of PartiQL those of insertions, the only statements in use."""
        if action not in _STATEMENTS:
            return transaction_checks(action, body, region, account)
        request = json.loads(body)
        insertions = [_INSERTION.match(part["Statement"]) for part in request.get("Statements", [request])]
        if not all(insertions):
            return []  # the operation's own name is checked, which AWS's policies do not have
        prefix = f"arn:aws:dynamodb:{region}:{account}:table"
        return [("dynamodb:PartiQLInsert", f"{prefix}/{match['table']}") for match in insertions if match]

    iam_actions.dynamodb_transaction_checks = with_insertions


def _rule_or_bus(operation: str, request: Mapping[str, Any]) -> str | None:
    """`rule/name` or `event-bus/name`, as AWS's permissions name them; None for a request about neither, or events."""
    if "EventBusName" in request or operation.endswith(("PutEvents", "ListRules", "ListEventBuses")):
        return None
    name = request.get("Rule") or request.get("Name")
    return name and f"{'event-bus' if operation.endswith('EventBus') else 'rule'}/{name}"


def parse_conditions_once(dynamodb: Any) -> None:
    """Change ministack.services.dynamodb: queries of large partitions take a tenth of the time, with the same answers.

    For each item of a partition ministack parses the key condition again, and for each item that it returns the
    projection. Ten items of a partition of 10,000 took 0.4 s of a processor. Here each text is parsed once.
    Stock ministack evaluates all other conditions and projections.
    """
    evaluate, project = dynamodb._evaluate_condition, dynamodb._project_item

    def evaluated(
        text: str, item: Wire, values: Wire, names: Wire, slot: str = "ConditionExpression"
    ) -> bool:
        if slot == "KeyConditionExpression" and (parsed := _parsed(text)):
            try:
                return _holds(parsed, item, values)
            except KeyError:  # other keys than texts
                pass
        return bool(evaluate(text, item, values, names, slot=slot))

    def projected(item: Wire, text: str, names: Wire) -> Any:
        attributes = [(names or {}).get(path) for path in _placeholders(text)]
        if not attributes or None in attributes or len(set(attributes)) < len(attributes):
            return project(item, text, names)
        return {name: item[name] for name in attributes if name in item}

    dynamodb._evaluate_condition = evaluated
    dynamodb._project_item = projected


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, str | None] | None:
    condition = _CONDITION.fullmatch(text)
    return condition and condition.groupdict()


def _holds(parsed: Mapping[str, str | None], item: Wire, values: Wire) -> bool:
    if item["pk"]["S"] != values[parsed["pk"]]["S"]:
        return False
    if prefix := parsed["prefix"]:
        return bool(item["sk"]["S"].startswith(values[prefix]["S"]))
    if first := parsed["first"]:
        return bool(values[first]["S"] <= item["sk"]["S"] <= values[parsed["last"]]["S"])
    return True


@lru_cache(maxsize=256)
def _placeholders(text: str) -> tuple[str, ...]:
    """Those of a projection of whole attributes; empty for another projection."""
    paths = tuple(path.strip() for path in text.split(","))
    return paths if all(re.fullmatch(r"#\w+", path) for path in paths) else ()


def unpack_archives_once(lambda_runtime: Any, directory: Path) -> None:
    """Change ministack.core.lambda_runtime: it links to archives that are unpacked in `directory` once.

    In ministack itself every cold start unpacks its own copy of code and layer. The layer holds some 1,500 files, so
    ten functions that start at once would be ten seconds late.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    lock = threading.Lock()

    class LinkedArchive(zipfile.ZipFile):
        """An archive whose extractall() makes links to the one unpacked copy."""

        def namelist(self) -> list[str]:
            # Only called to look for names that escape the directory; extractall() does not follow such names.
            return []

        def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
            digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
            unpacked = directory / digest
            with lock:
                if not unpacked.exists():
                    fresh = unpacked.with_suffix(".new")
                    super().extractall(fresh, super().namelist())
                    fresh.rename(unpacked)
            for entry in unpacked.iterdir():
                (Path(path) / entry.name).symlink_to(entry)

    lambda_runtime.zipfile = SimpleNamespace(
        ZipFile=LinkedArchive, BadZipFile=zipfile.BadZipFile, LargeFileError=zipfile.LargeZipFile
    )


def read_whole_logs(lambda_runtime: Any) -> None:
    """Change ministack.core.lambda_runtime, before it starts a worker: the log of an invocation is whole.

    ministack waits at most 50 ms for the first line of a worker's log, and 5 ms for each further line.
    Later lines would be in the log of the worker's next invocation.
    Here a worker writes a mark after each invocation, and the server reads up to the mark.
    """
    answers = '_real_stdout.write(json.dumps({"status": "%s", '
    script: str = lambda_runtime._PYTHON_WORKER_SCRIPT
    for answer in (answers % "ok" + '"result"', answers % "error" + '"error": str(e), "trace"'):
        assert script.count(answer) == 1, "ministack's worker answers in another way"
        script = script.replace(
            answer, f'sys.stderr.flush(); os.write(2, b"\\x1eend of the log\\n"); {answer}'
        )
    lambda_runtime._PYTHON_WORKER_SCRIPT = script
    bounded = lambda_runtime.Worker._drain_stderr_bounded

    def drained(worker: Any, *arguments: float, **named: float) -> str:
        if not worker.config.get("Runtime", "").startswith("python"):
            return str(bounded(worker, *arguments, **named))
        return up_to_mark(worker._stderr_queue, worker._stderr_thread.is_alive)

    lambda_runtime.Worker._drain_stderr_bounded = drained


def up_to_mark(lines: queue.Queue[str], comes_more: Any) -> str:
    """The lines before the mark; all lines if the worker died without one."""
    log: list[str] = []
    give_up_at = time.monotonic() + _MAX_WAIT_FOR_MARK_S
    while time.monotonic() < give_up_at:
        more = comes_more()
        try:
            line = lines.get(timeout=0.05 if more else 0)
        except queue.Empty:
            if not more:
                break
            continue
        if line.endswith(MARK):
            log += [text] if (text := line.removesuffix(MARK)) else []
            break
        log.append(line)
    return "\n".join(log)


def page_logs(logs: Any) -> None:
    """Change ministack.services.cloudwatch_logs: events after the first 10,000 are found, too.

    ministack's FilterLogEvents ends there, without a token. Here a token names the time of the page's last event, and
    how many events of that time its reader has.
    """
    stock: Callable[[Wire], tuple[int, Wire, bytes]] = logs._filter_log_events

    def page(request: Wire) -> tuple[int, Wire, bytes]:
        since, known = map(int, str(request.get("nextToken", "0-0")).split("-"))
        from_at = max(since, request.get("startTime", 0))
        most = min(request.get("limit", _LOG_PAGE), _LOG_PAGE)
        status, headers, body = stock({**request, "startTime": from_at, "limit": most + known})
        answer = json.loads(body)
        if status == 200:
            events = answer["events"]
            answer["events"] = events[known:]
            if len(events) == min(most + known, _LOG_PAGE):
                last_at = events[-1]["timestamp"]
                answer["nextToken"] = f"{last_at}-{sum(event['timestamp'] == last_at for event in events)}"
        return status, headers, json.dumps(answer).encode()

    logs._filter_log_events = page
