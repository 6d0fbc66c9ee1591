import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    alias: { "minute8-client": fileURLToPath(new URL("../clients/typescript/src/index.ts", import.meta.url)) },
  },
  test: { include: ["clients/typescript/tests/*.test.ts", "console/tests/*.test.ts"], isolate: false },
});
