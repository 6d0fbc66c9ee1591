/** Words for people. Pure. */

// What is obeyed instead of shown: controls but for the tab and the end of a line, and what turns the reading direction.
const OBEYED = /[^\P{Cc}\t\n]|\p{Bidi_Control}|[\u2028\u2029]/gu;

/** A text as data, as the command prints it: a character that would hide or turn others is shown as `\u{…}`. */
export function visible(text: string): string {
  return text.replace(OBEYED, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

/** `1 job`, `1,200 jobs`; `1+ jobs` if there may be more. */
export function counted(count: number, noun: string, orMore = false): string {
  return `${count.toLocaleString("en")}${orMore ? "+" : ""} ${noun}${count === 1 && !orMore ? "" : "s"}`;
}
