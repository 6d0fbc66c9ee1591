"""A refused request of a known caller leaves a log line with tenant and route; a stranger's leaves none."""

from __future__ import annotations

from typing import Any

import pytest

from minute8.api.http import refusals
from tests.api.calls import Office


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    logged: list[dict[str, Any]] = []

    class Logger:
        def info(self, message: str, **fields: Any) -> None:
            logged.append({"message": message, **fields})

    monkeypatch.setattr(refusals.telemetry, "logger", Logger)
    return logged


def test_a_line_has_the_route_without_its_values(office: Office, lines: list[dict[str, Any]]) -> None:
    assert office.alice("GET", "/v1/jobs/secret-name").status == 404
    assert office.alice("GET", "/v1/audit").status == 403
    assert office.alice("GET", "/v1/jobs").status == 200
    assert office.operator("GET", "/v1/tenants/nobody").status == 404
    assert [(line["tenant"], line["route"], line["status"]) for line in lines] == [
        ("alice", "GET /v1/jobs/{job_id}", 404),
        ("alice", "GET /v1/audit", 403),
        (lines[2]["tenant"], "GET /v1/tenants/{tenant_id}", 404),
    ]
    assert "secret-name" not in str(lines)


def test_a_stranger_writes_no_line(office: Office, lines: list[dict[str, Any]]) -> None:
    office.alice.key = "m8_nobody"
    assert office.alice("GET", "/v1/jobs").status == 401
    assert office.alice("GET", "/v1/nothing").status == 404
    assert lines == []
