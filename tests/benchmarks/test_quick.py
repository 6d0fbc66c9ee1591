"""The table of `make bench-quick`, and what makes it fail."""

from __future__ import annotations

from scripts.benchmarks import quick


def test_another_number_of_requests_is_named() -> None:
    kept = {"tick": {"PutItem": 16.0, "Query": 53.0}, "gone": {"GetItem": 1.0}}
    now = {"tick": {"PutItem": 1.0, "Query": 53.0}}
    assert list(quick._differences(kept, now)) == [
        "gone: GetItem 1 -> 0; keep it with --keep",
        "tick: PutItem 16 -> 1; keep it with --keep",
    ]
    assert not list(quick._differences(kept, kept))


def test_a_slower_figure_is_marked_by_the_rounds_own_ratios() -> None:
    # The machine was half as fast in the second round, for both.
    rows = {"slower": ([1.1, 2.2], [1.0, 2.0]), "same": ([1.0, 2.02], [1.0, 2.0]), "new": ([1.0], [])}
    head, slower, same, new = quick._table(rows, "HEAD^").splitlines()
    assert "HEAD^" in head
    assert slower.endswith("1.10  for the change log")
    assert same.endswith("1.00")
    assert new.split()[-1] == "-"
