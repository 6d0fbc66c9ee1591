/** The first pages of a list, and whether there are more; `show` gets those that are read so far. */
export async function firstPages<P extends { next_cursor: string | null }>(
  pages: AsyncIterable<P>,
  most: number,
  show?: (found: readonly P[]) => void,
): Promise<{ pages: P[]; more: boolean }> {
  const found: P[] = [];
  for await (const page of pages) {
    found.push(page);
    if (found.length >= most || !page.next_cursor) break;
    show?.(found);
  }
  return { pages: found, more: Boolean(found.at(-1)?.next_cursor) };
}
