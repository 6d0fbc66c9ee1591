/** What every view is made of. Whatever a tenant wrote reaches the page as text alone. */

import { Minute8Problem, Unreachable } from "minute8-client";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { linked } from "../lib/links";
import type { Loaded } from "../lib/load";
import { lookOf } from "../lib/states";
import { absolute, BROWSER_ZONE, fromNow, local, now, relative, zoneChoice, zoneOf } from "../lib/time";
import { trouble, troubleOf } from "../lib/trouble";
import { visible } from "../lib/words";
import { Icon } from "./icons";

/** A state: its shape, its colour and its word. */
export function State({ state, more }: { state: string; more?: string | undefined }): JSX.Element {
  const look = lookOf(state);
  return (
    <span class={`state ${look.tone}`}>
      <Icon name={look.shape} />
      {look.word}
      {more ? <span class="muted"> {more}</span> : null}
    </span>
  );
}

/** An instant, in the zone and the form that the reader has chosen; all three zones on hovering. */
export function Time({
  at,
  zone,
  inZone,
  full,
}: {
  at: string | null | undefined;
  zone?: string | undefined;
  /** The zone of an instant that is about a zone's own clock, whatever the reader has chosen. */
  inZone?: string | undefined;
  full?: boolean;
}): JSX.Element {
  if (!at) return <span class="muted">–</span>;
  const instant = Date.parse(at);
  const shownIn = inZone ?? zoneOf(zoneChoice.value, zone);
  const text =
    relative.value && !full ? fromNow(instant, now.value) : absolute(instant, shownIn, full ? undefined : now.value);
  const zones = [...new Set(["UTC", inZone ?? zone ?? "UTC", BROWSER_ZONE])];
  const title = zones
    .map((timezone) => `${absolute(instant, timezone)} ${local(instant, timezone).offset} ${timezone}`)
    .join("\n");
  return (
    <time dateTime={at} title={title}>
      {text}
    </time>
  );
}

/** Text of a tenant: isolated, so that right-to-left marks change nothing around it, and cut where it is too long. */
export function Text({ children, most = 200 }: { children: string; most?: number }): JSX.Element {
  const cut = children.length > most ? `${children.slice(0, most)}…` : children;
  return (
    <bdi class="text" title={cut === children ? undefined : visible(children.slice(0, 2000))}>
      {visible(cut)}
    </bdi>
  );
}

/** Text with its addresses as links, cut where it is too long. */
export function Linked({ children, most = 200 }: { children: string; most?: number }): JSX.Element {
  return (
    <bdi class="text" title={children.length > most ? visible(children.slice(0, 2000)) : undefined}>
      {linked(visible(children), most).map(({ shown, href }, n) =>
        href ? (
          <a key={n} href={href} target="_blank" rel="noopener noreferrer">
            {shown}
          </a>
        ) : (
          shown
        ),
      )}
    </bdi>
  );
}

/** What went wrong. With `retry`, it was a part of the view that did not load; else an action, and it comes into sight. */
export function Problem({ error, retry }: { error: unknown; retry?: () => void }): JSX.Element | null {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!retry) box.current?.scrollIntoView({ block: "nearest" });
  }, [error]);
  if (!error) return null;
  // The shell says it once for all parts of the view.
  if (retry && trouble.value && troubleOf(error) === trouble.value) return null;
  const problem = error instanceof Minute8Problem ? error : null;
  return (
    <div class="problem" role="alert" ref={box}>
      <Icon name="bang" />
      <div>
        <strong>{titleOf(error)}</strong>
        <div>
          <Text most={600}>{error instanceof Error ? error.message : String(error)}</Text>
        </div>
        {problem && problem.errors.length > 1 ? (
          <ul>
            {problem.errors.map((refusal) => (
              <li key={refusal.field}>
                <code>{refusal.field}</code> <Text>{refusal.message}</Text>
              </li>
            ))}
          </ul>
        ) : null}
        {problem?.requestId ? <div class="muted small">request {problem.requestId}</div> : null}
      </div>
      {retry ? (
        <button type="button" onClick={retry}>
          Try again
        </button>
      ) : null}
    </div>
  );
}

function titleOf(error: unknown): string {
  if (error instanceof Minute8Problem) return error.title || `HTTP ${error.status}`;
  if (error instanceof Unreachable) return "No answer from the API";
  return "Something in this page failed";
}

/** Nothing to show, and what to do about that. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children ? <div class="muted">{children}</div> : null}
    </div>
  );
}

/** The button below a list that shows more of it. */
export function More({ show, children }: { show: () => void; children: ComponentChildren }): JSX.Element {
  return (
    <div class="more">
      <button type="button" onClick={show}>
        {children}
      </button>
    </div>
  );
}

/** What was loaded; while there is nothing of it, that it is on its way, or why it is not. */
export function Found<T>(props: {
  found: Loaded<T>;
  lines?: number;
  children: (data: T) => ComponentChildren;
}): JSX.Element {
  const { data, error, reload } = props.found;
  return (
    <>
      <Problem error={error} retry={reload} />
      {data !== undefined ? props.children(data) : null}
      {data === undefined && !error ? <Waiting lines={props.lines ?? 4} /> : null}
    </>
  );
}

export function Waiting({ lines = 4 }: { lines?: number }): JSX.Element {
  // While the API does not answer, nothing is on its way.
  if (trouble.value) return <p class="muted">–</p>;
  return (
    <div class="waiting" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, n) => (
        <div key={n} />
      ))}
    </div>
  );
}

export function Card({
  title,
  side,
  children,
  id,
}: {
  title?: string;
  side?: ComponentChildren;
  children: ComponentChildren;
  id?: string;
}): JSX.Element {
  return (
    <section class="card" {...(id ? { id } : {})} aria-label={title}>
      {title ? (
        <header>
          <h2>{title}</h2>
          {side ? <div class="side">{side}</div> : null}
        </header>
      ) : null}
      {children}
    </section>
  );
}

/** A page's heading, and what can be done there. */
export function Head({
  title,
  sub,
  children,
}: {
  title: ComponentChildren;
  sub?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // A new view begins here, for the keyboard and for who listens; not for who is writing.
    if (!document.activeElement?.matches("input, textarea, select")) heading.current?.focus({ preventScroll: true });
  }, []);
  useEffect(() => {
    document.title = `${heading.current?.textContent ?? ""} · Minute8`;
  });
  return (
    <div class="head">
      <div>
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {sub ? <div class="muted sub">{sub}</div> : null}
      </div>
      {children ? <div class="actions">{children}</div> : null}
    </div>
  );
}

/** What narrows a list. On a phone only the first field stands there, until somebody asks for the others. */
export function Narrowing(props: { label: string; isNarrowed: boolean; children: ComponentChildren }): JSX.Element {
  const [isOpen, open] = useState(props.isNarrowed);
  return (
    <search class={isOpen ? "filters" : "filters folded"} aria-label={props.label}>
      {props.children}
      <button type="button" class="unfold" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        Filters
      </button>
    </search>
  );
}

/** A figure with its name. */
export function Figure({
  name,
  value,
  tone,
  hint,
}: {
  name: string;
  value: ComponentChildren;
  tone?: string | undefined;
  hint?: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`figure ${tone ?? ""}`}>
      <dt>{name}</dt>
      <dd>
        <span class="value">{value}</span>
        {hint ? <span class="hint">{hint}</span> : null}
      </dd>
    </div>
  );
}

/** Rows of a name and a value. */
export function Facts({ facts }: { facts: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A block of code or JSON, with a button that copies it. */
export function Code({ text, label }: { text: string; label: string }): JSX.Element {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls has to be reachable by keyboard */}
      <section tabIndex={0} aria-label={label}>
        <pre>
          <bdi>{visible(text.length > 20_000 ? `${text.slice(0, 20_000)}…` : text)}</bdi>
        </pre>
      </section>
      <button type="button" class="quiet" onClick={copy} aria-label={`Copy ${label}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
