/** The same change of many things, a few at a time, and what each refused. */

export interface Outcome<T> {
  done: number;
  refused: { item: T; because: string }[];
}

const AT_ONCE = 6;

/** Change each item; `told` is called after each. Goes on after refusals. */
export async function forEachOf<T>(
  items: readonly T[],
  change: (item: T) => Promise<unknown>,
  told: (done: number) => void,
): Promise<Outcome<T>> {
  const outcome: Outcome<T> = { done: 0, refused: [] };
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await change(item);
        outcome.done++;
      } catch (error) {
        outcome.refused.push({ item, because: error instanceof Error ? error.message : String(error) });
      }
      told(outcome.done + outcome.refused.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}
