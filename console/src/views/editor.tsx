/** A job's definition, every field of it, with what it will do while one types. */

import { Minute8Problem, type Shapes } from "minute8-client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Week } from "../draw/week";
import {
  anchored,
  BLANK,
  type Definition,
  type Form,
  fieldOf,
  formOf,
  definitionOf as written,
} from "../lib/definition";
import { diffOf } from "../lib/diff";
import { type Draft, draftOf, dropDraft, keepDraft, keyOf, placeOfDraft, rebased } from "../lib/drafts";
import type { Job } from "../lib/jobs";
import { useLoad } from "../lib/load";
import { go, to } from "../lib/router";
import { api, session } from "../lib/session";
import { absolute, BROWSER_ZONE, local } from "../lib/time";
import { counted } from "../lib/words";
import { say } from "../ui/actions";
import { useSettled } from "../ui/hooks";
import { Card, Head, Problem, Text, Waiting } from "../ui/parts";
import { Scroll } from "../ui/table";
import { EditorFields } from "./editor-fields";
import { Changes, ConsequencesOf, definitionOf } from "./job-definition";

export function NewJob(): JSX.Element {
  return <Editor before={null} />;
}

export function EditJob({ id }: { id: string }): JSX.Element {
  const job = useLoad(`edit ${id}`, (signal) => api().get("/v1/jobs/{job_id}", { path: { job_id: id }, signal }));
  if (!job.data)
    return (
      <>
        <Head title={`Edit ${id}`} />
        <Problem error={job.error} retry={job.reload} />
        {job.error ? <a href={to(["jobs"])}>All jobs</a> : <Waiting />}
      </>
    );
  return <Editor before={job.data} key={id} />;
}

/** Messages beside their fields. */
function byField(error: unknown, kind: string): Record<string, string> {
  if (!(error instanceof Minute8Problem)) return {};
  const found: Record<string, string> = {};
  for (const refusal of error.errors) {
    const field = fieldOf(refusal.field, kind);
    if (field)
      found[field] = `${refusal.field}: ${refusal.message}${refusal.accepted ? `; accepted: ${refusal.accepted}` : ""}`;
  }
  return found;
}

function Editor({ before: opened }: { before: Job | null }): JSX.Element {
  const place = placeOfDraft(session.value?.tenant?.tenant_id ?? "", opened?.job_id ?? "");
  const [before, setBefore] = useState(opened);
  const stored = useMemo(() => (before ? definitionOf(before) : undefined), [before]);
  const blank: Form = before && stored ? formOf(before.job_id, stored) : BLANK;
  const [kept] = useState(() => draftOf(place));
  const [draft, setDraft] = useState<Draft>(kept ?? { form: blank, revision: before?.revision ?? 0 });
  const [isBack, setBack] = useState(kept !== undefined);
  const { form } = draft;
  const [error, setError] = useState<unknown>();
  const [refusals, setRefusals] = useState(0);
  const [busy, setBusy] = useState(false);
  const change = (next: Draft) => {
    setDraft(next);
    keepDraft(place, next);
  };
  const discard = () => {
    dropDraft(place);
    setDraft({ form: blank, revision: before?.revision ?? 0 });
    setError(undefined);
    setBack(false);
  };
  const takeStored = async () => {
    const fresh = await api().get("/v1/jobs/{job_id}", { path: { job_id: form.job_id } });
    setBefore(fresh);
    change({ form: rebased(form, blank, formOf(form.job_id, definitionOf(fresh))), revision: fresh.revision });
    setError(undefined);
  };
  const isOutdated =
    (before !== null && draft.revision !== before.revision) ||
    (error instanceof Minute8Problem && error.name === "revision-mismatch");
  useEffect(() => {
    // After the render that marks the fields.
    if (refusals) document.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [refusals]);
  const text = useSettled(JSON.stringify(written(form, stored)), 300);
  const settled = useMemo(() => JSON.parse(text) as ReturnType<typeof written>, [text]);
  const id = useSettled(form.job_id.trim(), 300);
  const schedule = anchored(settled.schedule, before);
  const preview = useLoad(`preview ${JSON.stringify(schedule)} ${id}`, (signal) =>
    api().post("/v1/schedules/preview", {
      body: {
        schedule: schedule as Shapes["ScheduleDefinition"],
        count: 8,
        week: true,
        ...(/^[A-Za-z0-9][\w.-]*$/.test(id) ? { job_id: id } : {}),
      },
      repeatable: true,
      signal,
    }),
  );
  const problems = {
    ...byField(preview.error, form.target_kind),
    ...byField(error, form.target_kind),
    ...settled.problems,
  };
  const verb = before ? "Save" : "Create";
  const save = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await store(before, draft, change);
      dropDraft(place);
    } catch (refused) {
      setError(refused);
      setRefusals(refusals + 1);
    }
    setBusy(false);
  };
  return (
    <>
      <Head
        title={before ? `Edit ${before.job_id}` : "New job"}
        sub={before ? `revision ${before.revision}` : "Nothing runs before you create it."}
      />
      <form class="editor" onSubmit={save} noValidate>
        <div>
          {isBack ? (
            <div class="notice late" role="status">
              Your unsaved changes are back.{" "}
              <button type="button" onClick={discard}>
                Discard them
              </button>
            </div>
          ) : null}
          <EditorFields
            form={form}
            problems={problems}
            isNew={!before}
            set={(changes) => change({ ...draft, form: { ...form, ...changes } })}
          />
          <div class="save">
            {isOutdated ? (
              <div class="notice late" role="alert">
                The job was changed since you opened it.{" "}
                <button type="button" onClick={() => takeStored().catch(setError)}>
                  Show that version with my changes
                </button>
              </div>
            ) : (
              <Problem error={error} />
            )}
            {before ? <Ends before={before} after={settled.definition} /> : null}
            <div class="buttons">
              <button type="submit" class="primary" disabled={busy || Object.keys(settled.problems).length > 0}>
                {busy ? "…" : verb}
              </button>
              <a
                class="button"
                href={before ? to(["jobs", before.job_id]) : to(["jobs"])}
                onClick={() => dropDraft(place)}
              >
                Cancel
              </a>
            </div>
          </div>
        </div>
        <aside class="preview">
          <Preview
            found={preview.data}
            error={preview.error}
            hasCalendars={Boolean(form.exclude_calendars || form.include_calendars)}
          />
          {before ? (
            <Against before={before} after={settled.definition} isRefused={preview.error !== undefined} />
          ) : null}
        </aside>
      </form>
    </>
  );
}

/** Store what the draft says. Throws what the API refuses; then the draft stays. */
async function store(before: Job | null, draft: Draft, change: (draft: Draft) => void): Promise<void> {
  const { form } = draft;
  const { definition } = written(form, before ? definitionOf(before) : undefined);
  const id = form.job_id.trim();
  if (before) {
    const path = { job_id: before.job_id };
    const body = definition as Shapes["NewJob"];
    const job = await api().put("/v1/jobs/{job_id}", { path, body, revision: draft.revision });
    const ended = job.ends?.length ? `; it ended ${counted(job.ends.length, "fire time")} that waited` : "";
    say(`${job.job_id} is stored as revision ${job.revision}${ended}`);
    go(["jobs", job.job_id]);
    return;
  }
  const body = { ...definition, ...(id ? { job_id: id } : {}) } as Shapes["NewJob"];
  const text = JSON.stringify(body);
  const key = keyOf(draft, text);
  change({ ...draft, sent: { text, key } });
  const job = await api().post("/v1/jobs", { body, idempotencyKey: key });
  say(`${job.job_id} is created`);
  go(["jobs", job.job_id]);
}

/** An instant on a zone's clock; without its seconds where these are nought everywhere, so that both clocks have room. */
function shortly(at: number, zone: string, isWhole: boolean): string {
  const text = absolute(at, zone);
  return isWhole ? text.slice(0, -3) : text;
}

function Preview(props: {
  found: Shapes["SchedulePreview"] | undefined;
  error: unknown;
  hasCalendars: boolean;
}): JSX.Element {
  const { found } = props;
  const isWhole = found?.fires.every(({ fire_at }) => fire_at.endsWith(":00Z")) ?? false;
  return (
    <Card title="What it will do">
      <div aria-live="polite">
        {props.error ? (
          <p class="bad">
            <Text most={400}>{props.error instanceof Error ? props.error.message : String(props.error)}</Text>
          </p>
        ) : null}
        {found && !props.error ? (
          <p>
            <strong>
              <Text most={400}>{found.sentence}</Text>
            </strong>
          </p>
        ) : null}
        {!found && !props.error ? <Waiting lines={2} /> : null}
        {found?.warnings.map((warning) => (
          <p key={warning} class="notice late">
            <Text most={400}>{warning}</Text>
          </p>
        ))}
      </div>
      {found ? (
        <Scroll label="Next times">
          <table class="times" aria-label="Next times">
            <thead>
              <tr>
                <th scope="col">UTC</th>
                {found.timezone === "UTC" ? null : <th scope="col">{found.timezone}</th>}
                {[found.timezone, "UTC"].includes(BROWSER_ZONE) ? null : <th scope="col">{BROWSER_ZONE}</th>}
              </tr>
            </thead>
            <tbody>
              {found.fires.map(({ fire_at }) => {
                const at = Date.parse(fire_at);
                return (
                  <tr key={fire_at}>
                    {["UTC", found.timezone, BROWSER_ZONE]
                      .filter((zone, n, all) => all.indexOf(zone) === n)
                      .map((zone) => (
                        <td key={zone}>
                          <span class="muted">{local(at, zone).weekday}</span> {shortly(at, zone, isWhole)}
                        </td>
                      ))}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </Scroll>
      ) : null}
      {found?.fires.length && !found.week?.length ? <p class="hint">Not within the next seven days.</p> : null}
      {found?.week?.length ? (
        <>
          <h3>Hours of the next seven days</h3>
          <Week fires={found.week.map((at) => Date.parse(at))} zone={found.timezone} />
          {props.hasCalendars ? <p class="hint">Without the dates of its calendars.</p> : null}
        </>
      ) : null}
    </Card>
  );
}

/** What an edit changes; with the fire times of the new schedule, unless it is refused: then the field says why. */
function Against(props: { before: Job; after: Record<string, unknown>; isRefused: boolean }): JSX.Element {
  const { before, after } = props;
  const changes = diffOf(pruned(definitionOf(before)), pruned(after));
  const isRescheduled = changes.some((change) => change.field.startsWith("schedule"));
  const scheduleOf = (schedule: Definition) => anchored(schedule, before) as Shapes["ScheduleDefinition"];
  return (
    <Card title="What changes">
      {changes.length ? <Changes changes={changes} /> : <p class="muted">Nothing yet.</p>}
      {isRescheduled && !props.isRefused ? (
        <ConsequencesOf
          job={before}
          before={scheduleOf(before.schedule)}
          after={scheduleOf(after.schedule as Definition)}
        />
      ) : null}
    </Card>
  );
}

const MOST_ENDS = 3;

/** What waits now and would not run after the edit: retries, skips, runs that are planned or wait for their turn. */
function Ends({ before, after }: { before: Job; after: Definition }): JSX.Element | null {
  const body = JSON.stringify(after);
  const isSame = JSON.stringify(pruned(after.schedule)) === JSON.stringify(pruned(before.schedule));
  const found = useLoad(`ends ${before.job_id} ${before.revision} ${isSame || body}`, async (signal) => {
    if (isSame) return [];
    const options = { path: { job_id: before.job_id }, query: { dry_run: true }, signal };
    return (await api().put("/v1/jobs/{job_id}", { ...options, body: JSON.parse(body) })).ends ?? [];
  });
  const ends = found.data ?? [];
  if (!ends.length) return null;
  return (
    <div class="notice late" role="status">
      Saving ends what waits:
      <ul>
        {ends.slice(0, MOST_ENDS).map((end) => (
          <li key={end.fire_at}>{end.detail}</li>
        ))}
      </ul>
      {ends.length > MOST_ENDS ? `and ${ends.length - MOST_ENDS} more` : null}
    </div>
  );
}

/** Without nulls and empty lists, which mean the default. */
function pruned(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const kept = Object.entries(value)
    .map(([name, member]) => [name, pruned(member)] as const)
    .filter(
      ([, member]) =>
        member !== null &&
        !(Array.isArray(member) && !member.length) &&
        !(typeof member === "object" && !Array.isArray(member) && member && !Object.keys(member).length),
    );
  return Object.fromEntries(kept);
}
