/** What differs between two definitions, and between two lists of fire times. Pure. */

export interface Change {
  field: string;
  before: unknown;
  after: unknown;
}

/** The fields that differ, with dots between names, in the order of their names. */
export function diffOf(before: unknown, after: unknown, field = ""): Change[] {
  if (same(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    return names.flatMap((name) =>
      diffOf(before[name] ?? null, after[name] ?? null, field ? `${field}.${name}` : name),
    );
  }
  return [{ field, before, after }];
}

function same(first: unknown, second: unknown): boolean {
  return JSON.stringify(sorted(first)) === JSON.stringify(sorted(second));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value ?? null;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, sorted(value[name])]),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Which instants vanish and which appear, as far as both lists reach. */
export function consequences(
  before: readonly string[],
  after: readonly string[],
): { vanish: string[]; appear: string[]; stay: number } {
  const last = Math.min(lastOf(before), lastOf(after));
  const reached = (list: readonly string[]) => list.filter((at) => Date.parse(at) <= last);
  const old = new Set(reached(before));
  const fresh = new Set(reached(after));
  return {
    vanish: [...old].filter((at) => !fresh.has(at)),
    appear: [...fresh].filter((at) => !old.has(at)),
    stay: [...old].filter((at) => fresh.has(at)).length,
  };
}

function lastOf(list: readonly string[]): number {
  const last = list.at(-1);
  return last === undefined ? Number.POSITIVE_INFINITY : Date.parse(last);
}

/** A value as a short text. */
export function shortly(value: unknown): string {
  if (value === null || value === undefined) return "–";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
