import type { JSX } from "preact";
import { to } from "../lib/router";

/** Parts of a view, each with an address of its own: the last segment of its path, nothing for the first part. */
export function Tabs(props: {
  label: string;
  path: readonly string[];
  tabs: Record<string, string>;
  current: string;
}): JSX.Element {
  return (
    <ul class="tabs" aria-label={props.label}>
      {Object.entries(props.tabs).map(([segment, name]) => (
        <li key={segment}>
          <a
            href={to(segment ? [...props.path, segment] : props.path)}
            {...(segment === props.current ? { "aria-current": "page" as const } : {})}
          >
            {name}
          </a>
        </li>
      ))}
    </ul>
  );
}
