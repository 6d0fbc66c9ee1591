"""Tables of the documents are written from what declares them. tests/api/test_limits.py tries the bounds."""

from __future__ import annotations

import re

import pytest

from common import limits
from minute8.api.http.routing import Response, Route
from scripts.tables import DOCS, ROOT, ROUTES, TABLES, rows_of_limits, written


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_the_tables_as_they_are_now(name: str) -> None:
    page = (DOCS / name).read_text()
    assert written(name, page) == page, "run: python -m scripts.tables"


def test_a_changed_bound_changes_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 513 * 1024)
    monkeypatch.setattr(limits, "BULK_LINES", 1_001)
    page = written("limits.md", (DOCS / "limits.md").read_text())
    assert "| lines of a bulk request | 1,001, each at most 513 KiB |" in page


def test_a_new_route_has_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def mend_job() -> Response:
        """Mend a job.

        More of it.
        """
        return Response()

    monkeypatch.setitem(ROUTES, Route("POST", "/v1/jobs/{job_id}/mend", "write"), mend_job)
    row = "| `POST /v1/jobs/{job_id}/mend` | `mend_job` | write | Mend a job |"
    assert row in written("api.md", (DOCS / "api.md").read_text())


def test_a_table_that_the_page_does_not_have_is_missed() -> None:
    page = (DOCS / "limits.md").read_text().replace("## Planning", "## Plans")
    with pytest.raises(KeyError, match="Planning"):
        written("limits.md", page)


def test_every_bound_has_a_row() -> None:
    """A constant without one only tunes something: it belongs to its code."""
    source = (ROOT / "common" / "limits.py").read_text()
    named = set(re.findall(r"\{(\w+)", source))
    assert {name for name in vars(limits) if re.fullmatch(r"[A-Z][A-Z_]+", name)} == named
    assert sum(map(len, rows_of_limits().values())) > 100
