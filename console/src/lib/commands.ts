/** What a view does, as a command for a terminal. The key is never part of it. Pure. */

/** A word for a POSIX shell. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** What a first job can call: of the patterns of targets the first that is one address. Undefined: none is. Pure. */
export function targetOf(patterns: readonly string[]): string | undefined {
  const address = patterns.find((pattern) => !/[*?]/.test(pattern));
  return address === undefined || address.startsWith("arn:") ? address : `https://${address}/`;
}

export function cli(...words: string[]): string {
  return ["minute8", ...words.map(quoted)].join(" ");
}

export function curl(method: string, url: string, body?: unknown): string {
  const parts = ["curl", "-X", method, quoted(url), "-H", `"Authorization: Bearer $MINUTE8_KEY"`];
  if (body !== undefined)
    parts.push("-H", quoted("Content-Type: application/json"), "-d", quoted(JSON.stringify(body)));
  return parts.join(" ");
}
