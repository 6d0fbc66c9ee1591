"""Registers jobs: validates what a client wrote, and stores the job. The API and the CLI use it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from msgspec import structs

from common.errors import AlreadyExists, InvalidInput
from common.ids import check_id, check_note
from common.jobs.calendars import Calendars
from common.jobs.idempotency import AlreadyCreated, Created, IdempotencyKey
from common.jobs.job import ACTIVE, PAUSED, Job, check_revision, existing, exists
from common.jobs.placeholders import merge_patch
from common.jobs.store import Change, JobStore
from common.limits import (
    CALENDAR_POINTS,
    JOB_ID_CHARS,
    PLACEHOLDERS_A_POINT,
    PREPARATION_POINTS,
    SECRET_POINTS,
)
from common.registration import target_definitions
from common.registration.definition import (
    JobDefinition,
    Limits,
    build_job,
    definition_of,
    old_if_same,
    parse_definition,
)
from common.registration.payload_checks import check_secrets_exist, named_by, secret_names
from common.registration.schedule_definition import SingleSchedule
from common.storage.table import Table
from common.tenants.allowed_targets import is_allowed, is_minute8_resource, may_call, patterns_shown
from common.tenants.tenant import TenantRules

# Lines of a bulk request may come from another API's resources. That API's room implements these two protocols.


class GroupReview(Protocol):
    """The groups of one tenant's resources, while the lines of a request are checked one after the other."""

    def check(self, old: Job | None, new: Job) -> None:
        """Whether the group of a new resource takes it. Raises Conflict, QuotaExceeded."""

    def take(self, old: Job | None, new: Job) -> None:
        """Count the resource, and its group if the request makes it."""


class Imports(Protocol):
    """How a line keeps what it comes from. The member `field` of the line holds the resource."""

    @property
    def field(self) -> str: ...

    def group_in(self, resource: object) -> str:
        """The group of a resource, before the resource is checked."""

    def with_import(self, new: Job, resource: Any, old: Job | None) -> Job:
        """The job with the resource that it is. Raises InvalidInput."""

    def resource_of(self, store: JobStore, job: Job) -> dict[str, Any] | None:
        """The resource that a job is, as a line holds it; None if it is none. Raises MissingText, Busy."""

    def are_same(self, old: Job, new: Job) -> bool:
        """Whether the other API says the same of both jobs."""

    def review(self, store: JobStore, tenant: str) -> GroupReview:
        """The groups at the beginning of a request."""

    def ensure_group(self, store: JobStore, tenant: str, group: str) -> None:
        """Create the group if it does not exist. Raises QuotaExceeded, Busy."""


Decide = Callable[[Job | None, Callable[[], Job], float], Job]


@dataclass(frozen=True, slots=True)
class Registry:
    """Turns definitions into jobs of `store`, after validation and by the platform's rules for the tenant."""

    store: JobStore
    limits: Limits
    # For the lines of bulk requests that come from another API.
    imports: Imports

    def accepting_past(self) -> Registry:
        """The same registry; it also takes one-offs whose `at` is past."""
        return replace(self, limits=replace(self.limits, past_at=True))

    def only_deciding(self) -> Registry:
        """The same registry, which stores nothing: what it returns would be stored."""
        return replace(self, store=replace(self.store, is_dry=True))

    def create(
        self, tenant: str, job_id: str, raw: object, idempotency_key: IdempotencyKey | None = None
    ) -> Job:
        """Register a new job, in its `state`. With an idempotency key, a repeated request returns the job as created.

        Raises InvalidInput, AlreadyExists, Busy, KeyReused, RequestUnderWay.
        """
        check_id("job_id", job_id, JOB_ID_CHARS)
        raw, initial = split_initial_state(raw)

        def change(old: Job | None, now: float) -> Job:
            definition, limits = self.validated(tenant, job_id, raw)
            if exists(old):
                raise AlreadyExists("job", job_id)
            return initial.applied_to(build_job(tenant, job_id, definition, old, now, limits))

        try:
            return self.store.change(tenant, job_id, change, idempotency_key)
        except AlreadyCreated as earlier:
            return initial.applied_to(self._as_created(tenant, raw, earlier.created))

    def _as_created(self, tenant: str, raw: object, created: Created) -> Job:
        """The job as the same request created it. What the tenant may do now does not matter."""
        limits = replace(self.limits, past_at=True, spread_s=self.default_spread_s(tenant))
        definition = parse_definition(raw, limits)
        job = build_job(tenant, created.job_id, definition, None, created.created_at, limits)
        return structs.replace(
            job,
            revision=created.revision,
            schedule_revision=created.schedule_revision,
            shard=created.shard,
        )

    def put(self, tenant: str, job_id: str, raw: object, expected_revision: int | None = None) -> Job:
        """As `put_edit`; returns the new job alone."""
        return self.put_edit(tenant, job_id, raw, expected_revision).new

    def put_edit(self, tenant: str, job_id: str, raw: object, expected_revision: int | None = None) -> Edit:
        """Create or replace a job. A new job gets the `state` of the definition; an existing job keeps its state.

        Nothing is stored if nothing changes. With the expected revision NONE_YET it only creates.
        Raises InvalidInput, Busy; with an expected revision RevisionMismatch and NotFound.
        """
        raw, initial = split_initial_state(raw)
        definition, limits = self.validated(tenant, job_id, raw)

        def change(old: Job | None, now: float) -> Job:
            check_revision(old, job_id, expected_revision)
            new = build_job(tenant, job_id, definition, old, now, limits)
            return old_if_same(old, new) if old and exists(old) else initial.applied_to(new)

        return self._edit(tenant, job_id, change)

    def patch(self, tenant: str, job_id: str, changes: object, expected_revision: int | None = None) -> Edit:
        """Merge `changes` into the definition; None resets a field to its default (a JSON merge patch, RFC 7396).

        Nothing is stored if nothing changes. Raises InvalidInput, NotFound, RevisionMismatch, Busy.
        """
        if not isinstance(changes, Mapping):
            raise InvalidInput("job", "must be an object", value=changes, accepted="a JSON object")

        def change(old: Job | None, now: float) -> Job:
            job = existing(old, job_id, expected_revision)
            (read,) = self.store.texts.with_payloads([job])
            definition, limits = self.validated(tenant, job_id, merge_patch(definition_of(read), changes))
            return old_if_same(job, build_job(tenant, job_id, definition, job, now, limits))

        return self._edit(tenant, job_id, change)

    def _edit(self, tenant: str, job_id: str, change: Change) -> Edit:
        old: Job | None = None

        def noting_old(stored: Job | None, now: float) -> Job:
            nonlocal old
            old = stored
            return change(stored, now)

        new = self.store.change(tenant, job_id, noting_old)
        return Edit(old, new)

    def replace_with(self, tenant: str, job_id: str, raw: object, decide: Decide) -> Job:
        """Store what `decide` returns. It takes the stored job, a function that makes the defined job, and the time.

        A new job that the function makes has the definition's `state`, and may be a one-off that is past, as on AWS.
        Raises InvalidInput, Busy, what `decide` raises.
        """
        raw, initial = split_initial_state(raw)
        definition, limits = self.validated(tenant, job_id, raw, past_at=True)

        def change(old: Job | None, now: float) -> Job:
            def defined_job() -> Job:
                new = build_job(tenant, job_id, definition, old, now, limits)
                return new if exists(old) else initial.applied_to(new)

            return decide(old, defined_job, now)

        return self.store.change(tenant, job_id, change)

    def validated(
        self, tenant: str, job_id: str, raw: object, *, past_at: bool = False
    ) -> tuple[JobDefinition, Limits]:
        """The validated definition, and the limits of its schedule.

        Raises InvalidInput, NotFound (the tenant), TenantSuspended.
        """
        check_id("job_id", job_id, JOB_ID_CHARS)
        validator = self.validator(tenant, past_at=past_at)
        return validator.validated(raw), validator.limits

    def default_spread_s(self, tenant: str) -> int:
        """The spread of jobs that name none: the tenant's, or else the platform's."""
        rules = self.store.ledger.known.rules(tenant, self.store.clock.now())
        return self.limits.spread_s if rules is None or rules.spread_s is None else rules.spread_s

    def validator(self, tenant: str, *, past_at: bool = False) -> JobValidator:
        """The validator for the tenant's jobs now; with `past_at` it accepts one-offs that are past.

        Raises NotFound (the tenant), TenantSuspended.
        """
        rules = self.store.ledger.rules(tenant, self.store.clock.now())
        limits = _narrowed(self.limits, rules, past_at)
        return JobValidator(tenant, rules, limits, Calendars(self.store.jobs), self.store.ledger.table)


@dataclass(frozen=True, slots=True)
class Edit:
    """A job before an edit, None if it was never created, and after."""

    old: Job | None
    new: Job


@dataclass(frozen=True, slots=True)
class InitialState:
    """The state in which a job is created, and the note of a paused one."""

    state: str = ACTIVE
    note: str = ""

    def applied_to(self, job: Job) -> Job:
        """The new job in this state."""
        return structs.replace(job, state=PAUSED, note=self.note, group="") if self.state == PAUSED else job


def split_initial_state(raw: object) -> tuple[object, InitialState]:
    """Split `state` and `note` from a definition. Raises InvalidInput."""
    if not isinstance(raw, Mapping):
        return raw, InitialState()
    fields = dict(raw)
    state, note = fields.pop("state", ACTIVE), check_note(fields.pop("note", ""))
    if state not in (ACTIVE, PAUSED):
        raise InvalidInput("state", "must be a state", value=state, accepted=f"{ACTIVE}, {PAUSED}")
    return fields, InitialState(state, note)


@dataclass(frozen=True, slots=True)
class JobValidator:
    """Validates definitions of one tenant's jobs. `limits` also apply to their schedules."""

    tenant: str
    rules: TenantRules
    limits: Limits
    calendars: Calendars
    tenants: Table
    _known_calendars: set[str] = field(default_factory=set)
    _known_secrets: set[str] = field(default_factory=set)

    def validated(self, raw: object) -> JobDefinition:
        """The validated definition of what a client wrote. Raises InvalidInput."""
        definition = parse_definition(raw, self.limits, lambda target: check_allowed(target, self.rules))
        if definition.dead_letter is not None:
            _check_dead_letter(definition.dead_letter, self.rules)
        if definition.alert:
            _check_kept(definition.alert.no_success_for_s, self.rules)
        target, schedule = target_definitions.stored(definition.target), definition.schedule
        named = named_by(target, definition.payload, schedule.patches(), self.limits.payload_formats)
        _check_preparation(definition, len(secret_names(named)))
        for where, single in schedule.singles():
            self._check_calendars(where, single)
        unknown = [each for each in named if each.name not in self._known_secrets]
        if unknown:
            check_secrets_exist(self.tenants, self.tenant, unknown)
            self._known_secrets.update(secret_names(unknown))
        return definition

    def _check_calendars(self, where: str, schedule: SingleSchedule) -> None:
        """The calendars of a single schedule exist. Raises InvalidInput, which names its place."""
        excluding = schedule.exclude.calendars if schedule.exclude else []
        self._check_named(f"{where}.exclude.calendars", excluding)
        self._check_named(f"{where}.include_calendars", schedule.include_calendars)

    def _check_named(self, field: str, names: Sequence[str]) -> None:
        if unknown := set(names) - self._known_calendars:
            self.calendars.check_named(self.tenant, unknown, field)
            self._known_calendars.update(unknown)


def _check_preparation(definition: JobDefinition, secrets: int) -> None:
    """Nothing interrupts the preparation of a call, and other tenants' calls wait for it. Raises InvalidInput."""
    calendars = {
        name
        for _, schedule in definition.schedule.singles()
        for name in (*(schedule.exclude.calendars if schedule.exclude else ()), *schedule.include_calendars)
    }
    is_patched = any(definition.schedule.patches())
    if not (calendars or secrets or is_patched):
        return  # a payload alone has bounds of its own
    payload = json.dumps(definition.payload, separators=(",", ":"), ensure_ascii=False)
    patched_kib = len(payload.encode(errors="replace")) // 1_024 if is_patched else 0
    placeholders = payload.count("{{")
    points = (
        len(calendars) * CALENDAR_POINTS
        + secrets * SECRET_POINTS
        + patched_kib
        + placeholders // PLACEHOLDERS_A_POINT
    )
    if points > PREPARATION_POINTS:
        raise InvalidInput(
            "job",
            f"takes {points} points to prepare a call, for {len(calendars)} calendars, {secrets} secrets, "
            f"{patched_kib} KiB of a patched payload and {placeholders} placeholders",
            accepted=f"at most {PREPARATION_POINTS} points: {CALENDAR_POINTS} for a calendar, {SECRET_POINTS} for a "
            f"secret, 1 for a KiB of a patched payload, 1 for {PLACEHOLDERS_A_POINT} placeholders",
        )


def _narrowed(limits: Limits, rules: TenantRules, past_at: bool) -> Limits:
    return replace(
        limits,
        past_at=limits.past_at or past_at,
        shortest_interval_s=max(limits.shortest_interval_s, rules.quotas.shortest_interval_s),
        payload_bytes=min(limits.payload_bytes, rules.quotas.payload_bytes),
        spread_s=limits.spread_s if rules.spread_s is None else rules.spread_s,
    )


def check_allowed(target: Mapping[str, Any], rules: TenantRules) -> None:
    """Raises InvalidInput unless the platform lets the tenant call the target."""
    if is_minute8_resource(target):
        raise InvalidInput(
            "target.arn",
            "is a part of Minute8 itself",
            value=target.get("arn"),
            accepted="a target of your own",
        )
    if not is_allowed(target, rules.allowed_targets):
        name = "url" if "url" in target else "arn"
        called = " with ".join(target[part] for part in (name, "role_arn") if part in target)
        raise InvalidInput(
            f"target.{name}",
            "must be a target that the platform allows this tenant",
            value=called,
            accepted=f"what these patterns cover: {patterns_shown(rules.allowed_targets)}",
        )


def _check_kept(no_success_for_s: int | None, rules: TenantRules) -> None:
    if no_success_for_s is not None and no_success_for_s > rules.run_retention_s:
        raise InvalidInput(
            "alert.no_success_for_s",
            "is longer than the platform keeps this tenant's runs",
            value=no_success_for_s,
            accepted=f"60 to {rules.run_retention_s}",
        )


def _check_dead_letter(arn: str, rules: TenantRules) -> None:
    if not may_call({"kind": "sqs", "arn": arn}, rules):
        raise InvalidInput(
            "dead_letter",
            "must be a queue that the platform allows this tenant",
            value=arn,
            accepted=f"what these patterns cover: {patterns_shown(rules.allowed_targets)}",
        )
