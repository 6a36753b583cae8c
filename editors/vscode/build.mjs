// node build.mjs [--tests]: the extension into one file, out/extension.js; with --tests the tests as well.

import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const shared = { bundle: true, platform: "node", target: "node20", logLevel: "warning", legalComments: "none" };

rmSync("out", { recursive: true, force: true });
await build({
    ...shared,
    entryPoints: ["src/extension.ts"],
    outfile: "out/extension.js",
    format: "cjs",
    external: ["vscode"],
    minify: true,
    mainFields: ["module", "main"],
});
if (process.argv.includes("--tests")) {
    const tests = (folder) => readdirSync(folder).filter((name) => name.endsWith(".test.ts")).map((name) => `${folder}/${name}`);
    await build({
        ...shared,
        entryPoints: [...tests("test/unit"), ...tests("test/real")],
        outdir: "out/test",
        outbase: "test",
        outExtension: { ".js": ".mjs" },
        format: "esm",
        sourcemap: "inline",
        external: ["vscode", "playwright-core"],
        packages: "external",
    });
}
