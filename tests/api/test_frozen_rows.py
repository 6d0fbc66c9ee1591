"""The attributes of each kind of item that a stage with all that tenants can have stores: frozen since 1.0."""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest

from common.storage import keys
from tests.api.calls import Office
from tests.api.test_any_damage import TABLES, Played
from tests.golden.test_frozen import FROZEN, HERE, WITHOUT_ITEM, patterns

ROWS = {name: row for name, row in vars(keys).items() if isinstance(row, keys.Row)}
FORMS = json.loads((HERE / "rows.json").read_text())


def forms_of(played: Played) -> dict[str, dict[str, str]]:
    """Of each kind of row the attributes with their types in DynamoDB, over all its items."""
    forms: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    of_row = {name: patterns(row) for name, row in ROWS.items() if name in WITHOUT_ITEM}
    for table in TABLES:
        for item in played.world.dynamodb.scan(TableName=f"test-{table}")["Items"]:
            key = item["pk"]["S"], item["sk"]["S"]
            for name, both in of_row.items():
                if all(map(re.fullmatch, both, key)):
                    for attribute, value in item.items():
                        forms[name][re.sub("_[0-9a-f]{16}$", "_<planner>", attribute)].update(value)
    return {
        name: {attribute: "".join(sorted(types)) for attribute, types in sorted(form.items())}
        for name, form in sorted(forms.items())
    }


def test_what_each_kind_of_row_stores(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    assert forms_of(Played(office, monkeypatch)) == FORMS, FROZEN


def test_each_kind_of_row_has_an_item_or_a_form() -> None:
    """Six have neither yet. No other one is added: a new kind of row gets an item or stands in the stage."""
    without_both = {"address_off", "group_deletion", "newest_event", "set_aside", "share", "waiting_line"}
    assert WITHOUT_ITEM - FORMS.keys() == without_both
