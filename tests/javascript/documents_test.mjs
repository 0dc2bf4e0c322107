// The examples of docs/WEBASSEMBLY.md: commands, then programs, which print what their comments say.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import test from "node:test";

const { LOOPFLEET_BIN, LOOPFLEET_SOURCE, PATH } = process.env;

function blocksOf(text, language) {
  return [...text.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].filter(([, mark]) => mark === language).map(([, , block]) => block);
}

test("docs/WEBASSEMBLY.md", async () => {
  const text = await readFile(join(LOOPFLEET_SOURCE, "docs/WEBASSEMBLY.md"), "utf8");
  const folder = await mkdtemp(join(tmpdir(), "loopfleet-javascript-"));
  const run = (command, ...given) =>
    execFileSync(command, given, { cwd: folder, encoding: "utf8", env: { ...process.env, PATH: LOOPFLEET_BIN + delimiter + PATH } });
  try {
    await copyFile(join(LOOPFLEET_SOURCE, "client/javascript/loopfleet.mjs"), join(folder, "loopfleet.mjs"));
    const [commands, programs] = [blocksOf(text, "sh"), blocksOf(text, "js")];
    assert.ok(commands.length > 0 && programs.length > 0);
    for (const command of commands) run("sh", "-ec", command);
    for (const program of programs) {
      await writeFile(join(folder, "example.mjs"), program);
      const promised = program.split("\n").filter((line) => line.startsWith("console.log(")).map((line) => line.split("// ")[1]);
      assert.deepEqual(run(process.execPath, "example.mjs").trimEnd().split("\n"), promised);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
