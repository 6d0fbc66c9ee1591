"""Calls of AWS without a client of botocore's, which would add the service's description to the Lambda package."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.storage.domains import domain_of, partition_of

_TIMEOUT_S: Final = 3
_BINARY: Final = ("CiphertextBlob", "Plaintext")


@dataclass(frozen=True, slots=True)
class PlainCalls:
    """Calls with the rights of a session of botocore's. `trusted`: a file of roots, or True for botocore's own."""

    session: Any
    trusted: Any

    def call(self, service: str, operation: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; `operation` as in the header X-Amz-Target.

        Raises ClientError (the service refuses), BotoCoreError (it does not answer), ValueError (it answers no JSON).
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import ClientError
        from botocore.httpsession import URLLib3Session

        region = self.session.get_config_variable("region")
        endpoint = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or os.environ.get("AWS_ENDPOINT_URL")
        request = AWSRequest(
            "POST",
            f"{endpoint or f'https://{service}.{region}.{domain_of(partition_of(region))}'}/",
            headers={"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": operation},
            data=json.dumps(body),
        )
        credentials = self.session.get_credentials().get_frozen_credentials()
        SigV4Auth(credentials, service, region).add_auth(request)
        response = URLLib3Session(verify=self.trusted, timeout=_TIMEOUT_S).send(request.prepare())
        answer: dict[str, Any] = json.loads(response.content)
        if response.status_code == 200:
            return answer
        code = str(answer.get("__type", "")).rpartition("#")[2] or str(response.status_code)
        message = str(answer.get("message") or answer.get("Message") or "")
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation.rpartition(".")[2])


@dataclass(frozen=True, slots=True)
class PlainKms:
    """Encrypts and decrypts as boto3's client for KMS does."""

    calls: PlainCalls

    def encrypt(self, **request: Any) -> dict[str, Any]:
        """Raises what `PlainCalls.call` raises."""
        return self._answer("Encrypt", request)

    def decrypt(self, **request: Any) -> dict[str, Any]:
        """Raises what `PlainCalls.call` raises."""
        return self._answer("Decrypt", request)

    def _answer(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        body = {
            name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for name, value in request.items()
        }
        answer = self.calls.call("kms", f"TrentService.{operation}", body)
        bytes_of = {name: base64.b64decode(answer[name]) for name in _BINARY if name in answer}
        return answer | bytes_of
