/** The first pages of a list, and whether there are more. */
export async function firstPages<P extends { next_cursor: string | null }>(
  pages: AsyncIterable<P>,
  most: number,
): Promise<{ pages: P[]; more: boolean }> {
  const found: P[] = [];
  for await (const page of pages) {
    found.push(page);
    if (found.length >= most) break;
  }
  return { pages: found, more: Boolean(found.at(-1)?.next_cursor) };
}
