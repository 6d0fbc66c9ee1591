"""Rehearsals: keys of the tokens' issuer and masters of key pairs are rotated while calls go on, and none is refused.

Each environment of the API has caches of its own, which were filled at other times. The steps are those of the pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.errors import Unauthenticated
from common.platform.signing_masters import Masters, StoredMasters
from minute8.api.auth.issuer_keys import IssuerKeys
from minute8.api.auth.tokens import Tokens
from tests.api.issuer import NOW, key_set, settings, token

AGAIN_S = 30
FRESH_S = 600
TRUSTED_FOR_S = 60

# As in docs/deploying.md: a new key is published for so long before it signs.
PUBLISHED_BEFORE_S = 60
TOKEN_LIFETIME_S = 900
EVERY_S = 15
OFFSETS_S = (0, 7, 599)


@dataclass
class RotatedIssuer:
    """An issuer with a document of keys, and environments that have asked it at different times."""

    document: bytes = key_set("rsa")
    environments: list[Tokens] = field(default_factory=list)

    def __post_init__(self) -> None:
        def fetch(url: str) -> bytes:
            return self.document

        self.environments = [
            Tokens(settings(), lambda token_settings: IssuerKeys(token_settings, fetch)) for _ in OFFSETS_S
        ]

    def call(self, key: str, now: float, made_at: float) -> None:
        """A call of each environment that has begun by now, with a token of this key. Raises Unauthenticated."""
        for offset_s, environment in zip(OFFSETS_S, self.environments, strict=True):
            if now >= NOW + offset_s:
                environment.authenticate(token(key, iat=made_at, exp=made_at + TOKEN_LIFETIME_S), now)


def test_no_call_is_refused_while_the_issuer_rotates_its_key() -> None:
    """Publish; a minute later sign; withdraw the old key once its last token has expired."""
    issuer = RotatedIssuer()
    published_at = NOW + FRESH_S + 5  # an environment has just asked, and asks again half a minute later
    signs_at = published_at + PUBLISHED_BEFORE_S
    withdrawn_at = signs_at + TOKEN_LIFETIME_S
    for now in range(NOW, withdrawn_at + 2 * FRESH_S, EVERY_S):
        if now >= published_at:
            issuer.document = key_set("rsa", "rsa-next")
        if now >= withdrawn_at:
            issuer.document = key_set("rsa-next")
        # The newest token, and one that expires in this second.
        for made_at in (now, now - TOKEN_LIFETIME_S + 1):
            issuer.call("rsa-next" if made_at >= signs_at else "rsa", now, made_at)
    for environment in issuer.environments:
        with pytest.raises(Unauthenticated):
            environment.authenticate(token("rsa", exp=withdrawn_at + 3 * FRESH_S), withdrawn_at + 2 * FRESH_S)


def test_a_key_that_signs_before_it_is_published_long_enough_is_refused_for_half_a_minute_at_most() -> None:
    """Why the page asks for a minute: an environment asks the issuer at most every AGAIN_S."""
    issuer = RotatedIssuer()
    issuer.call("rsa", NOW + 600, NOW + 600)
    with pytest.raises(Unauthenticated):
        issuer.call("rsa-next", NOW + 600, NOW + 600)
    issuer.document = key_set("rsa", "rsa-next")
    with pytest.raises(Unauthenticated):
        issuer.call("rsa-next", NOW + 605, NOW + 605)
    issuer.call("rsa-next", NOW + 605 + AGAIN_S, NOW + 605)


def test_no_pair_is_refused_while_masters_are_rotated() -> None:
    """Rotate; make new pairs for all callers; retire the old master once they use them."""
    stored = [Masters.rotated(None)]
    environments = [StoredMasters(lambda: stored[0].to_text()) for _ in range(4)]
    old = stored[0].new_access_key_id()
    old_secret, pairs = stored[0].secret_of(old), [old]

    def call(now: float) -> None:
        for number, environment in enumerate(environments):
            for access_key_id in pairs:
                if now >= 13 * number:  # an environment begins
                    expected = stored[0].secret_of(access_key_id)
                    assert expected and environment.secret_of(access_key_id, now) == expected

    _between(0, 200, call)
    stored[0] = Masters.rotated(stored[0])
    _between(200, 400, call)
    new = stored[0].new_access_key_id()  # made by an environment that has read the new master
    pairs.append(new)
    _between(406, 600, call)
    pairs.remove(old)
    stored[0] = stored[0].retired(1)
    _between(600, 800, call)
    assert old_secret and all(environment.secret_of(old, 800) is None for environment in environments)
    assert all(environment.secret_of(old, 600 + TRUSTED_FOR_S + 200) is None for environment in environments)


def _between(start: int, end: int, call: Callable[[float], Any]) -> None:
    for now in range(start, end):
        call(float(now))
