"""Calls of AWS without a client of botocore's, which would add the service's description to the Lambda package."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from common.storage.connections import MAX_IDLE_S, LastUse, socket_options
from common.storage.domains import domain_of, partition_of

_TIMEOUT_S: Final = 3
_BINARY: Final = ("CiphertextBlob", "Plaintext")


@dataclass(slots=True)
class PlainCalls:
    """Calls with the rights of a session of botocore's. `trusted`: a file of roots, or True for botocore's own."""

    session: Any
    trusted: Any
    # Its connections stay open. To read the roots takes longer than a call.
    _http: Any = None
    _used: LastUse = field(default_factory=LastUse)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, service: str, operation: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; `operation` as in the header X-Amz-Target.

        Raises ClientError (the service refuses), BotoCoreError (it does not answer), ValueError (it answers no JSON).
        """
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import ClientError

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
        response = self._send(request.prepare())
        answer: dict[str, Any] = json.loads(response.content)
        if response.status_code == 200:
            return answer
        code = str(answer.get("__type", "")).rpartition("#")[2] or str(response.status_code)
        message = str(answer.get("message") or answer.get("Message") or "")
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation.rpartition(".")[2])

    def _send(self, request: Any) -> Any:
        """Send it, on a connection that was used a moment ago if there is one. Raises BotoCoreError.

        If the service has closed that one, it is sent once more: what is called here may happen twice.
        """
        from botocore.exceptions import ConnectionClosedError
        from botocore.httpsession import URLLib3Session

        with self._lock:
            if self._http is None:
                options: Any = socket_options()  # its stubs say that these are texts
                self._http = URLLib3Session(verify=self.trusted, timeout=_TIMEOUT_S, socket_options=options)
            elif not self._used.is_within(MAX_IDLE_S):
                self._http.close()
            self._used = LastUse()
        try:
            return self._http.send(request)
        except ConnectionClosedError:
            self._http.close()
            return self._http.send(request)


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
