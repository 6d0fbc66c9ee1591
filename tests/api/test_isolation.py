"""Access: every route of the OpenAPI document, called with every kind of credential (`tests/api/walk.py`).

The tenant comes from the credential alone. What belongs to another tenant is refused like what does not exist.
"""

from __future__ import annotations

from urllib.parse import quote

import pytest

from common.platform.api_keys import OPERATOR
from minute8.api.app import ROUTES
from tests.api.calls import Caller, Office
from tests.api.walk import NOTHING, ODD_IDS, ROLE_OF, Call, calls_of_document, refusals_of

CALLS = list(calls_of_document())


def test_every_route_is_walked_by_everybody(settled: Office) -> None:
    assert len(CALLS) == len([route for route in ROUTES if route.role])
    assert {call.role for call in CALLS} == {"read", "write", "admin", "operator"}
    assert settled.everybody.keys() == ROLE_OF.keys()
    refusals = [refusal for call in CALLS for refusal in refusals_of(call)]
    assert len(CALLS) >= 40
    assert len(refusals) >= 840


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_route_refuses_exactly_whom_it_must(settled: Office, call: Call) -> None:
    before = settled.stored()
    for who, status, problem in refusals_of(call):
        refused = settled.everybody[who](call.method, call.url, call.body)
        assert (refused.status, refused.problem) == (status, problem), who
        if status == 401:
            assert refused.headers["www-authenticate"].startswith("Bearer")
        if status == 403:
            assert f"{call.role!r}" in refused.json["detail"]
    assert settled.stored() == before


@pytest.mark.parametrize("call", [call for call in CALLS if call.names and call.method != "PUT"], ids=str)
def test_another_tenants_things_are_refused_like_missing_ones(settled: Office, call: Call) -> None:
    before = settled.stored()
    caller = settled.bob if call.role != OPERATOR else settled.operator
    none = caller(call.method, call.path.format(**NOTHING), call.body)
    assert (none.status, none.problem) == (404, "not-found")
    if call.role != OPERATOR:
        text = caller(call.method, call.url, call.body).text
        for name, value in call.names.items():
            text = text.replace(f"'{value}'", f"'{NOTHING[name]}'")
        assert text == none.text
    assert settled.stored() == before


def _who_may(office: Office, call: Call) -> Caller:
    return office.operator if call.role == OPERATOR else office.alice_admin


@pytest.mark.parametrize("call", [call for call in CALLS if call.names], ids=str)
def test_odd_ids_name_nothing(settled: Office, call: Call) -> None:
    before = settled.stored()
    for name in call.names:
        for odd in ODD_IDS:
            if (call.method, odd) == ("PUT", "TENANT"):
                continue  # a valid name: the PUT would create it
            for value in (odd, *([f"alice:{odd}:20261121T031300Z"] if name == "execution_id" else [])):
                names = {**call.names, name: quote(value, safe="")}
                answer = _who_may(settled, call)(call.method, call.path.format(**names), call.body)
                accepted = (400, 404) if call.method == "PUT" else (404,)
                assert answer.status in accepted, (call, name, value, answer)
    assert settled.stored() == before
