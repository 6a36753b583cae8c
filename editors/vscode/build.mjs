// node build.mjs [--tests]: the extension into one file, out/extension.js, and the licences of what is bundled with it;
// with --tests the tests as well.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const shared = { bundle: true, platform: "node", target: "node20", logLevel: "warning", legalComments: "none" };

rmSync("out", { recursive: true, force: true });
const { metafile } = await build({
    ...shared,
    metafile: true,
    entryPoints: ["src/extension.ts"],
    outfile: "out/extension.js",
    format: "cjs",
    external: ["vscode"],
    minify: true,
    mainFields: ["module", "main"],
});
writeFileSync("out/THIRD-PARTY-NOTICES.txt", notices(Object.keys(metafile.inputs)));

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

/** The licence of each package that has a file in the bundle. */
function notices(files) {
    const packages = files.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []);
    return [...new Set(packages)].sort().map(notice).join("\n\n");
}

function notice(folder) {
    const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((one) => /^licen[sc]e/i.test(one));
    const text = file !== undefined && existsSync(`${folder}/${file}`) ? readFileSync(`${folder}/${file}`, "utf8").trim() : license;
    return `${name} ${version}\n\n${text}`;
}
