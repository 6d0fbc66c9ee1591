/** Pictures of each view for the docs: `python -m scripts.screenshots` runs this on the demo's workload. */

import { afterAll, expect, it } from "vitest";
import { close, newPage, settled, show, signIn } from "./stage";

interface Shot {
  name: string;
  key: string;
  view: string;
  theme?: "light" | "dark";
  width?: number;
  height?: number;
}

const { directory, shots } = JSON.parse(process.env.MINUTE8_CONSOLE_STAGE ?? "{}") as {
  directory: string;
  shots: Shot[];
};

afterAll(close);

it.each(shots)("$name", async ({ name, key, view, theme = "light", width = 1200, height = 800 }) => {
  const page = await newPage({ colorScheme: theme, viewport: { width, height } });
  await signIn(page, key);
  await show(page, view);
  await settled(page);
  await page.waitForTimeout(4000); // what follows the first answers: health, then pictures
  await settled(page);
  expect(await page.getByRole("alert").allInnerTexts(), "the demo does not run any more?").toEqual([]);
  await page.screenshot({ path: `${directory}/console-${name}.png` });
  await page.context().close();
});
