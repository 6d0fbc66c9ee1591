import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the console works below any base path. The page is `…/console`, with a slash or without.
  base: "./",
  experimental: {
    renderBuiltUrl: (name, { hostType }) => (hostType === "html" ? `console/${name}` : { relative: true }),
  },
  resolve: {
    alias: { "minute8-client": fileURLToPath(new URL("../clients/typescript/src/index.ts", import.meta.url)) },
  },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    // Nothing inline: the Content-Security-Policy allows none.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    // What the first view and later ones share comes with the first: one script, not three.
    rolldownOptions: { preserveEntrySignatures: "allow-extension" },
  },
  server: { proxy: { "/v1": { target: process.env.MINUTE8_URL ?? "http://127.0.0.1:1", changeOrigin: true } } },
});
