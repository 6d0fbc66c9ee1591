/** The addresses in a text. Pure. */

const ADDRESS = /(https?:\/\/[^\s<>"]*[^\s<>".,;)])/;

/** The parts of a text, up to `most` characters. An address has a whole `href`; nothing but http and https is one. */
export function linked(text: string, most: number): { shown: string; href?: string }[] {
  let left = most;
  return text.split(ADDRESS).flatMap((part, n) => {
    if (!part || left < 0) return [];
    const shown = part.length > left ? `${part.slice(0, left)}…` : part;
    left -= part.length;
    return n % 2 ? { shown, href: part } : { shown };
  });
}
