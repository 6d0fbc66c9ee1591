"""The move of an account, in small: the requests to AWS and to the API, and what it costs."""

from __future__ import annotations

from tests.eventbridge.moving import move


def test_a_move_needs_one_request_a_schedule_of_aws_and_few_of_ours() -> None:
    account, phases = move(450, lambda text: None)
    assert account.requests == {
        "list_schedule_groups": 1,
        "list_tags_for_resource": 50,
        "list_schedules": 5,
        "get_schedule": 450,
        "list_rules": 1,
    }
    results = {phase.name: phase.result for phase in phases}
    assert results["plan (`--dry-run`)"] == results["import"] == "500 new"
    assert results["plan again"] == "500 same"
    assert results["export as Terraform"].startswith("450 schedules")
    requests = {phase.name: phase.api_requests for phase in phases}
    # A request for each group, where it is made two more, and one for each thousand lines.
    assert requests["plan (`--dry-run`)"] == 50 + 1
    assert requests["import"] == 50 * 3 + 1
    stored = next(phase for phase in phases if phase.name == "import")
    assert 0 < stored.write_units < 450 * 20
