"""`minute8 secrets`."""

from __future__ import annotations

from tests.cli.conftest import Desk


def test_a_value_comes_from_stdin_and_is_never_shown(desk: Desk) -> None:
    stored = desk("secrets", "put", "token", stdin="correct horse\n")
    assert (stored.code, stored.out) == (0, "token is stored, as revision 1\n")
    again = desk("secrets", "put", "token", "--json", stdin="correct battery")
    assert (again.json["revision"], "correct" in again.out) == (2, False)
    listed = desk("secrets", "list")
    assert ("token" in listed.out, "correct" in listed.out) == (True, False)
    assert [secret["name"] for secret in desk("secrets", "list", "--json").json] == ["token"]
    assert desk("secrets", "delete", "token").code == 0
    assert desk("secrets", "list").out == "no secrets\n"
    assert desk("secrets", "delete", "token").code == 3


def test_a_value_that_is_too_short_is_refused(desk: Desk) -> None:
    value = "".join(["hunt", "er2"])  # not in a line that a stack shows
    refused = desk("secrets", "put", "token", stdin=f"{value}\n")
    assert value not in refused.err + refused.out
    assert refused.code == 2
    assert "8 characters" in refused.err
