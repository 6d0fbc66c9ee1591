"""Reads a parameter of SSM. A client of botocore's would take the description of all of SSM into the Lambda package."""

from __future__ import annotations

import json
import os
from typing import Any

from common.errors import Busy
from common.storage import aws

_TIMEOUT_S = 3


def read_parameter(name: str) -> str | None:
    """The decrypted value of a parameter; None if it does not exist. Raises Busy if SSM does not give it."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.exceptions import BotoCoreError
    from botocore.httpsession import URLLib3Session

    session = aws.new_session()
    region = session.get_config_variable("region")
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    endpoint = os.environ.get("AWS_ENDPOINT_URL_SSM") or os.environ.get("AWS_ENDPOINT_URL")
    request = AWSRequest(
        "POST",
        f"{endpoint or f'https://ssm.{region}.{suffix}'}/",
        headers={"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "AmazonSSM.GetParameter"},
        data=json.dumps({"Name": name, "WithDecryption": True}),
    )
    SigV4Auth(session.get_credentials().get_frozen_credentials(), "ssm", region).add_auth(request)
    roots: Any = aws.roots() or True
    try:
        answer = URLLib3Session(verify=roots, timeout=_TIMEOUT_S).send(request.prepare())
        found: dict[str, Any] = json.loads(answer.content)
    except (BotoCoreError, ValueError) as error:
        raise Busy(f"the parameter {name} cannot be read now: {error}") from error
    if answer.status_code == 200:
        return str(found["Parameter"]["Value"])
    kind = str(found.get("__type", "")).rpartition("#")[2]
    if kind == "ParameterNotFound":
        return None
    raise Busy(f"the parameter {name} cannot be read now: {kind or answer.status_code}")
