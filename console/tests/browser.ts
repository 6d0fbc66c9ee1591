/** A browser that installs with the packages: a Chromium inside @sparticuz/chromium, unpacked before its first use. */

import packed from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

// Its own list of arguments switches web security off, which these tests are about.
const ARGUMENTS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--font-render-hinting=none", "--headless=shell"];
const TRIES = 10;

export async function launch(): Promise<Browser> {
  const executablePath = await packed.executablePath();
  for (let attempt = 1; ; attempt++) {
    try {
      return await chromium.launch({ executablePath, args: ARGUMENTS, headless: true });
    } catch (error) {
      // Another process may still be writing the file.
      if (attempt === TRIES || !String(error).includes("ETXTBSY")) throw error;
      await new Promise((done) => setTimeout(done, 300));
    }
  }
}
