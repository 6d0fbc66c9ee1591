/** The two instants of a range, in the zone that the reader has chosen. */

import type { JSX } from "preact";
import { instantOf, localField, rfc3339, zoneChoice, zoneOf } from "../lib/time";

export interface RangeText {
  /** RFC 3339, or nothing. */
  from: string | undefined;
  until: string | undefined;
}

export function RangeFields(props: RangeText & { set: (changes: Partial<RangeText>) => void }): JSX.Element {
  const zone = zoneOf(zoneChoice.value, undefined);
  const field = (name: "from" | "until", label: string) => {
    const at = Date.parse(props[name] ?? "");
    return (
      <label class="range small">
        {label}
        <input
          type="datetime-local"
          aria-label={`${label}, ${zone}`}
          value={Number.isNaN(at) ? "" : localField(at, zone)}
          onChange={(event) => {
            const chosen = instantOf(event.currentTarget.value, zone);
            props.set({ [name]: Number.isNaN(chosen) ? undefined : rfc3339(chosen) });
          }}
        />
      </label>
    );
  };
  return (
    <>
      {field("from", "From")}
      {field("until", "Until")}
    </>
  );
}
