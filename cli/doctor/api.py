"""Does the API answer from here? Other checks examine the resources that it uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import httpx

from cli.doctor.deployment import Deployment
from cli.output import seconds
from common.platform.findings import Finding, failed, not_checked, ok

# It needs no key, and the handler answers it. So an answer shows that gateway, permission, function and code work.
_ASKED: Final = "/v1/openapi.json"


def api(deployment: Deployment) -> Iterator[Finding]:
    """Send one request without a key."""
    url = deployment.api_url or _output_of_the_stack(deployment)
    if url is None:
        yield not_checked("the stack does not tell the API's address", "`minute8 --url … doctor` does")
        return
    address, began = url.rstrip("/") + _ASKED, deployment.clock.now()
    log = f"look at the log of {deployment.named('api')}"
    try:
        answer = deployment.get(address)
    except httpx.HTTPError as error:
        yield failed(
            f"{address} does not answer: {error}", "check the address, its certificate and the network"
        )
        return
    if answer.status_code != httpx.codes.OK:
        yield failed(f"{address} answers {answer.status_code} {answer.reason_phrase}", log)
    yield ok(f"{url} answers within {seconds(max(0.001, deployment.clock.now() - began))}")


def _output_of_the_stack(deployment: Deployment) -> str | None:
    """The URL from the stack's outputs; None if it is not an address on AWS, as with the embedded AWS."""
    if ".amazonaws." not in deployment.client("sts").meta.endpoint_url:
        return None
    client = deployment.client("cloudformation")
    try:
        (stack,) = client.describe_stacks(StackName=deployment.named())["Stacks"]
    except client.exceptions.ClientError as error:
        if "does not exist" not in str(error):
            raise
        return None
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", [])}
    url: str | None = outputs.get("ApiUrl")
    return url
