"""docs/guarantees.md has the table that the API answers, and it knows all kinds of target."""

from __future__ import annotations

import re
from pathlib import Path

from common.jobs.delivery import DELIVERIES, delivery_of
from common.registration.target_definitions import MODELS
from minute8.api.shapes.jobs import TargetDelivery

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "guarantees.md").read_text()


def test_the_page_has_the_table() -> None:
    part = TEXT.partition("## How often a target is called")[2].partition("\n## ")[0]
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in part.splitlines()]
    assert [row for row in rows if len(row) == 4 and row[0].startswith("`")] == [
        (f"`{row.kind}`, {row.applies_to}", row.called, row.key, row.kept) for row in DELIVERIES
    ]
    assert TargetDelivery.__struct_fields__ == DELIVERIES[0].__struct_fields__


def test_each_kind_has_a_row() -> None:
    assert {row.kind for row in DELIVERIES} == set(MODELS)
    for kind in MODELS:
        assert delivery_of({"kind": kind, "arn": "arn:aws:sqs:us-east-1:1:a.fifo"}).kind == kind


def test_variants_have_rows_of_their_own() -> None:
    queue = {"kind": "sqs", "arn": "arn:aws:sqs:us-east-1:1:a"}
    assert delivery_of(queue).called == "at least once"
    assert delivery_of(queue | {"arn": f"{queue['arn']}.fifo"}).called == "exactly once"
    assert re.search("Name", delivery_of({"kind": "lambda", "durable": True}).key)
