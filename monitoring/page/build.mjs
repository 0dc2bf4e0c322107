// Bundles the page and writes it as C++:
//
//   node build.mjs PACKAGES OUT    PACKAGES/node_modules has the packages of package.json
//
// In OUT: page_files.cc (monitoring/page_file.h), the files themselves, and size.json.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const [packages, out] = process.argv.slice(2);
const source = join(dirname(fileURLToPath(import.meta.url)), "src");
const modules = join(packages, "node_modules");
const { buildSync } = createRequire(join(packages, "package.json"))("esbuild");

const bundled = buildSync({
  entryPoints: { page: join(source, "main.tsx") },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2020",
  jsx: "automatic",
  jsxImportSource: "preact",
  nodePaths: [modules],
  outdir: out,
  write: false,
  legalComments: "none",
  logLevel: "warning",
});

const kinds = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  svg: "image/svg+xml",
};
const files = [
  ...bundled.outputFiles.map((file) => [file.path.split(/[\\/]/).pop(), Buffer.from(file.contents)]),
  ...["index.html", "icon.svg"].map((name) => [name, readFileSync(join(source, name))]),
];

// Three octal digits each: nothing that follows can become a part of them.
const literal = (bytes) => {
  const lines = [];
  for (let i = 0; i < bytes.length; i += 24) {
    const line = [...bytes.subarray(i, i + 24)];
    lines.push(`"${line.map((byte) => "\\" + byte.toString(8).padStart(3, "0")).join("")}"`);
  }
  return lines.join("\n    ");
};

mkdirSync(out, { recursive: true });
const sizes = {};
const entries = files.map(([name, bytes]) => {
  const packed = gzipSync(bytes, { level: 9 });
  writeFileSync(join(out, name), bytes);
  sizes[name] = { bytes: bytes.length, gzip: packed.length };
  const kind = kinds[name.split(".").pop()];
  const views = [packed, bytes].map((part) => `std::string_view(\n    ${literal(part)},\n    ${part.length})`);
  return `  {"/${name}", "${kind}", ${views.join(", ")}},`;
});
sizes.total_gzip = Object.values(sizes).reduce((sum, size) => sum + size.gzip, 0);
writeFileSync(join(out, "size.json"), JSON.stringify(sizes, null, 2) + "\n");
writeFileSync(
  join(out, "page_files.cc"),
  `// Made by monitoring/page/build.mjs.
#include <array>

#include "monitoring/page_file.h"

namespace loopfleet::monitoring {
namespace {
constexpr std::array<PageFile, ${entries.length}> kFiles = {{
${entries.join("\n")}
}};
}  // namespace
std::span<const PageFile> PageFiles() { return kFiles; }
}  // namespace loopfleet::monitoring
`,
);
