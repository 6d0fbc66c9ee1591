import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Run by tests/end_to_end/test_console.py, which deploys what they need and says where it is.
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: [process.env.MINUTE8_CONSOLE_RUN ?? "tests/*.journey.ts"],
    testTimeout: 150_000,
    hookTimeout: 60_000,
    // A busy machine takes longer than the usual second.
    expect: { poll: { timeout: 30_000 } },
    // Two files at once, on two cores or more: one mostly waits for what fires.
    maxWorkers: 2,
    bail: 1,
  },
});
