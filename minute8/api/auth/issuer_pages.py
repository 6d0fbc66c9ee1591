"""Where a person signs in at the token issuer, for the console: authorization code with PKCE, without a secret.

https://www.rfc-editor.org/rfc/rfc7636 and https://www.rfc-editor.org/rfc/rfc9700#section-2.1.1
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

from common import telemetry
from common.errors import InvalidInput, Minute8Error, shown
from minute8.api.auth.discovery import Fetch, fetching, metadata
from minute8.api.auth.tokens import TokenSettings, check_https

# The least time between two requests to the issuer, after an answer and after a failure.
FRESH_S: Final = 3_600
AGAIN_S: Final = 60
# The origin goes into a header: nothing in it may end a directive of the Content-Security-Policy.
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class IssuerPages:
    """The issuer's two endpoints, and the public client that the console is there."""

    authorize: str
    token: str
    client_id: str
    scope: str

    @property
    def token_origin(self) -> str:
        """The one foreign origin that the page may connect to."""
        return f"https://{urlsplit(self.token).netloc}"

    def to_json(self) -> Mapping[str, str]:
        return {
            "authorize": self.authorize,
            "token": self.token,
            "client_id": self.client_id,
            "scope": self.scope,
        }


class KnownIssuerPages:
    """The pages of the configured issuer. Use one instance per process."""

    def __init__(self, settings: TokenSettings, fetch: Fetch | None = None) -> None:
        self._settings = settings
        self._fetch = fetch or fetching(ssl.create_default_context())
        self._pages: IssuerPages | None = None
        self._next_at = float("-inf")

    def at(self, now: float) -> IssuerPages | None:
        """The pages; None if the issuer has not said them yet: keys still sign in then. Never raises."""
        if now >= self._next_at:
            try:
                self._pages, self._next_at = self._read(), now + FRESH_S
            except (OSError, HTTPException, Minute8Error) as error:
                self._next_at = now + AGAIN_S
                telemetry.logger().warning(
                    "the sign-in of the tokens' issuer could not be read",
                    issuer=self._settings.issuer,
                    reason=shown(f"{type(error).__name__}: {error}"),
                )
        return self._pages

    def _read(self) -> IssuerPages:
        description = metadata(self._fetch, self._settings.issuer)
        names = ("authorization_endpoint", "token_endpoint")
        authorize, token = (check_https(name, description.get(name)) for name in names)
        if not _HOST.fullmatch(urlsplit(token).netloc):
            raise InvalidInput("token_endpoint", "must name a host", value=token, accepted="https://host/…")
        return IssuerPages(authorize, token, self._settings.console_client, self._settings.console_scope)
