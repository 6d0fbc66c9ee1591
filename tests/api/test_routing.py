"""A request's route is found by the segments of its path."""

from __future__ import annotations

import pytest

from minute8.api.app import ROUTES
from minute8.api.http.problems import MethodNotAllowed, NoSuchRoute


def test_every_route_finds_itself() -> None:
    for route in ROUTES:
        ids = {name: f"a-{name}" for name in route.parameters}
        assert ROUTES.find(route.method, route.path.format(**ids)) == (route, ids)


@pytest.mark.parametrize(
    ("method", "path", "route", "ids"),
    [
        ("GET", "/v1/jobs/report", "/v1/jobs/{job_id}", {"job_id": "report"}),
        ("POST", "/v1/jobs/_bulk", "/v1/jobs/_bulk", {}),
        ("DELETE", "/v1/jobs/_bulk", "/v1/jobs/{job_id}", {"job_id": "_bulk"}),
        ("GET", "/v1/jobs/{}", "/v1/jobs/{job_id}", {"job_id": "{}"}),
        ("GET", "/v1/jobs/{job_id}", "/v1/jobs/{job_id}", {"job_id": "{job_id}"}),
    ],
)
def test_a_name_comes_before_an_id_if_it_takes_the_method(
    method: str, path: str, route: str, ids: dict[str, str]
) -> None:
    route_of_request, parameters = ROUTES.find(method, path)
    assert (route_of_request.path, parameters) == (route, ids)


@pytest.mark.parametrize(
    "path", ["", "/", "/v1/", "/v1/jobs/", "/v1/jobs//runs", "//v1", "/v1/jobs/a\nb", "/" * 9_999]
)
def test_nothing_is_at_other_paths(path: str) -> None:
    with pytest.raises(NoSuchRoute):
        ROUTES.find("GET", path)


def test_all_methods_of_a_path_are_named() -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        ROUTES.find("TRACE", "/v1/jobs/_bulk")
    assert refused.value.allowed == ["DELETE", "GET", "PATCH", "POST", "PUT"]
