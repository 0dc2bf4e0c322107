// The page in a browser: run by page_browser_test.py on a live fleet with jobs.
//
//   node page_browser.mjs PACKAGES    LOOPFLEET_ADDRESS and LOOPFLEET_HTTP name the fleet
//
// Prints a line for each check; exit status 1 at the first that fails. LOOPFLEET_SCREENSHOTS: a folder for
// screenshots of every screen.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const { chromium } = createRequire(join(process.argv[2], "package.json"))("playwright-core");
const origin = `http://${process.env.LOOPFLEET_HTTP}`;
const pictures = process.env.LOOPFLEET_SCREENSHOTS;
const LIMIT_MS = 120_000; // reached only if something is wrong

const told = (...argv) => JSON.parse(execFileSync("loopfleet", [...argv, "--json"], { encoding: "utf8" }));
const say = (text) => console.log(`ok: ${text}`);

const browser = await chromium.launch({
  executablePath: process.env.LOOPFLEET_CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu"], // tests run as root in containers, too
  timeout: LIMIT_MS,
});

const complaints = [];
const asked = new Set();
async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT_MS);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  await page.goto(origin);
  await page.waitForSelector(".cards");
  return page;
}
const go = async (page, hash, selector) => {
  await page.evaluate((to) => (location.hash = to), hash);
  await page.waitForSelector(selector);
};

const batches = told("batch", "list");
const batch = batches[batches.length - 1];
const outcomes = JSON.parse(process.env.LOOPFLEET_OUTCOMES);
const good = outcomes.find((outcome) => outcome.status === "ok");
const bad = outcomes.find((outcome) => outcome.status === "failed");
const worker = told("worker", "list")[0];
const SCREENS = [
  ["overview", "#/", ".cards"],
  ["batch", `#/batch/${batch.batch}`, "table[aria-label=Outcomes]"],
  ["job", `#/job/${good.job}`, ".tree"],
  ["failed-job", `#/job/${bad.job}`, ".health-bad"],
  ["workers", "#/workers", "table[aria-label=Workers]"],
  ["worker", `#/worker/${worker.worker}`, "#hardware-title"],
  ["failures", "#/failures", "#failures-title"],
];

const page = await open({ viewport: { width: 1280, height: 900 } });

// ---- live
await page.waitForSelector(".live-live");
say("it is live");
{
  const rows = page.locator("table[aria-label=Batches] tbody tr");
  const newest = Number(await rows.first().getAttribute("data-key"));
  const begin = Date.now();
  const submitted = new Promise((resolve, reject) => {
    const child = execFile("loopfleet", ["submit", "-"], (error) => (error ? reject(error) : resolve(Date.now())));
    child.stdin.end('{"benchmark": "benchmark://mm-v0/mm16_16_24", "actions": ["down"]}\n');
  });
  await page.waitForFunction(
    (before) =>
      [...document.querySelectorAll("table[aria-label=Batches] tbody tr")].some((row) => Number(row.dataset.key) > before),
    newest,
  );
  const shown = Date.now();
  const accepted = await submitted;
  say(`a submitted batch is shown (${Math.max(0, shown - accepted)} ms after submit ended, ${shown - begin} ms after it began)`);
}

// ---- the same numbers as the command's
const figures = (selector) =>
  page.$$eval(`${selector} data`, (all) => all.map((one) => Number(one.value)).filter((one) => !Number.isNaN(one)));
{
  const row = `table[aria-label=Batches] tr[data-key="${batch.batch}"]`;
  await page.waitForSelector(row);
  const cell = (label) => page.$eval(`${row} td[data-label="${label}"] data`, (one) => Number(one.value));
  // The page may be slightly older than the command's answer.
  for (const [label, value] of [
    ["Jobs", batch.jobs],
    ["Finished", batch.finished],
    ["Failed", batch.failed],
    ["From store", batch.from_store],
  ]) {
    await page.waitForFunction(
      ([where, wanted]) => Number(document.querySelector(where)?.value) === wanted,
      [`${row} td[data-label="${label}"] data`, value],
    );
    assert.equal(await cell(label), value);
  }
  assert.match(await page.textContent(`${row} td[data-label=State]`), new RegExp(batch.state));
  say("a batch has the numbers of `batch list --json`");
}
{
  await go(page, `#/job/${good.job}`, ".tree");
  const shown = await figures("main > .facts");
  const { outcome } = told("job", "show", good.job);
  for (const field of ["gflop_per_second", "elapsed_ns", "elapsed_low_ns", "elapsed_high_ns", "spread", "flop_count"]) {
    assert.ok(shown.includes(outcome[field]), `${field} ${outcome[field]} is not among ${shown}`);
  }
  assert.equal(await page.textContent(".grade"), outcome.grade);
  const stages = await figures(".stage-list");
  assert.deepEqual(stages, Object.values(outcome.stages_ns).filter((ns) => ns !== null));
  assert.ok((await page.textContent("main")).includes(`${outcome.samples_ns.length} timed batches`));
  await page.waitForSelector("#samples-title ~ .chart canvas");
  say("a job has the numbers of `job show --json`");

  const end = await page.textContent(".tree");
  if (good.actions.length > 0) {
    await page.click(".trail button >> nth=0");
    await page.waitForFunction((text) => document.querySelector(".tree").textContent !== text, end);
    await page.click(".trail button:last-child");
    await page.waitForFunction((text) => document.querySelector(".tree").textContent === text, end);
  }
  say("each step of its walk can be looked at");

  const lines = (of) =>
    page.$$eval(`.profile.${of} [role=row]`, (rows) =>
      rows.map((row) => [row.querySelector("code").textContent, row.querySelector(".profile-share").textContent]),
    );
  const code = await lines("code");
  const loops = (await lines("tree")).flatMap(([text, share]) => text.match(/: (L\d+)/)?.slice(1).map((loop) => [loop, share]) ?? []);
  assert.ok(loops.length > 3);
  for (const [loop, share] of loops) assert.equal(code.find(([text]) => text.includes(`/* ${loop}: `))?.[1], share, loop);
  assert.ok(code.some(([text, share]) => text.includes(" += ") && share !== ""));
  say("where the time of a run goes stands beside the tree and its C");

  const commands = await page.$$eval(".command code", (all) => all.map((one) => one.textContent));
  for (const format of ["c", "llvm-ir", "asm"]) {
    const command = commands.find((one) => one.startsWith(`loopfleet job code ${good.job} --format ${format}`));
    assert.ok(command, `no command prints ${format}: ${commands}`);
    assert.ok(execFileSync("bash", ["-c", command], { encoding: "utf8" }).length > 0);
  }
  say("the commands that it shows print its C, LLVM IR and assembly");

  const folder = mkdtempSync(join(tmpdir(), "lf-test-"));
  const command = commands.find((one) => one.startsWith(`loopfleet job code ${good.job} --format wasm`));
  execFileSync("bash", ["-c", command], { cwd: folder });
  await page.setInputFiles(".run-here", join(folder, "kernel.wasm"));
  await page.waitForSelector(".ran-here .facts");
  assert.ok((await figures(".ran-here .facts")).every((figure) => figure > 0));
  writeFileSync(join(folder, "other.wasm"), "no module");
  await page.setInputFiles(".run-here", join(folder, "other.wasm"));
  await page.waitForSelector(".ran-here .empty");
  rmSync(folder, { recursive: true });
  say("its kernel runs in the browser");
}
{
  await go(page, `#/job/${bad.job}`, ".health-bad");
  assert.ok((await page.textContent(".health-bad")).includes(bad.error.code));
  assert.ok((await page.textContent(".health-bad")).includes(bad.error.message));
  say("a failed job says why, and shows no figure");
  assert.ok(!(await page.textContent("main")).includes("GFLOP/s"));
}
{
  await go(page, `#/worker/${worker.worker}`, "#hardware-title");
  const shown = await figures("#hardware-title ~ .facts");
  for (const field of ["clock_mhz", "peak_gflop_per_second", "read_gb_per_second", "triad_gb_per_second"]) {
    assert.ok(worker.hardware[field] === null || shown.includes(worker.hardware[field]), field);
  }
  say("a worker has the numbers of `worker list --json`");
  execFileSync("loopfleet", ["worker", "drain", worker.name, "--reason", "a new fan"]);
  await page.waitForSelector(".health-warning");
  assert.match(await page.textContent(".health-warning"), /drained by .*: a new fan/);
  await go(page, "#/", ".cards");
  await page.waitForFunction(() => document.querySelector("#pools").textContent.includes("a new fan"));
  execFileSync("loopfleet", ["worker", "resume", worker.name]);
  await page.waitForFunction(() => !document.querySelector("#pools").textContent.includes("a new fan"));
  say("a drain is shown with its reason, and goes");
}

// ---- answers that take longer than the 5 s in which the live stream says something
{
  const one = await open({ viewport: { width: 1280, height: 900 } });
  await one.route("**/api/job/*", async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 7000));
    await route.continue().catch(() => {}); // the page is closed
  });
  await go(one, `#/job/${good.job}`, ".tree");
  await one.context().close();
  say("a slow answer is shown");
}

// ---- tables
{
  await go(page, "#/", "table[aria-label='Best results']");
  const table = "table[aria-label='Best results']";
  const rates = () => page.$$eval(`${table} td[data-label="GFLOP/s"] data`, (all) => all.map((one) => Number(one.value)));
  const ascending = (await rates()).sort((a, b) => a - b);
  assert.ok(ascending.length > 1);
  const head = page.locator(`${table} th >> text=GFLOP/s`);
  await head.click();
  assert.deepEqual(await rates(), [...ascending].reverse());
  assert.equal(await page.getAttribute(`${table} th[aria-sort]`, "aria-sort"), "descending");
  await head.click();
  assert.deepEqual(await rates(), ascending);
  say("a head sorts its column, the largest first, and then the other way");
}

// ---- every screen, wide and narrow, light and dark
for (const [width, height] of [
  [1280, 900],
  [400, 800],
]) {
  for (const colorScheme of ["light", "dark"]) {
    const one = await open({ viewport: { width, height }, colorScheme });
    for (const [name, hash, selector] of SCREENS) {
      await go(one, hash, selector);
      const wide = await one.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} is ${wide} wide on a screen of ${width}`);
      // Content beyond the edge that does not make the page scroll cannot be read either.
      const cut = await one.evaluate((edge) => {
        const over = [...document.querySelectorAll("main *")].find((element) => {
          const box = element.getBoundingClientRect();
          const hidden = element.closest("pre, .chart, thead, .skip, code, .profile") !== null;
          return !hidden && box.width > 0 && (box.right > edge + 1 || box.left < -1);
        });
        return over ? `${over.tagName}.${over.className}: ${over.textContent.slice(0, 60)}` : null;
      }, width);
      assert.equal(cut, null, `${name} at ${width}`);
      const nameless = await one.evaluate(() =>
        [...document.querySelectorAll("button, a, progress, [role=img], nav, table")]
          .filter((element) => !(element.textContent.trim() || element.getAttribute("aria-label")))
          .map((element) => element.outerHTML.slice(0, 100)),
      );
      assert.deepEqual(nameless, [], `${name}: without a name`);
      if (pictures) await one.screenshot({ path: join(pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
    }
    await one.context().close();
  }
  say(`every screen fits ${width} pixels`);
}

// ---- without a mouse
{
  const one = await open({ viewport: { width: 1280, height: 900 } });
  // The number of focusable elements now. Counted each time, because the page may change meanwhile.
  const reachable = () =>
    one.evaluate(
      () => [...document.querySelectorAll("a[href], button:enabled, [tabindex='0']")].filter((e) => e.getClientRects().length > 0).length,
    );
  for (const [name, hash, selector] of SCREENS) {
    await go(one, hash, selector);
    await one.evaluate(() => {
      document.activeElement?.blur();
      window.getSelection()?.removeAllRanges();
      document.querySelectorAll("[data-seen]").forEach((element) => element.removeAttribute("data-seen"));
    });
    const most = 3 * (await reachable()) + 20;
    let missing = -1;
    for (let i = 0; i < most && missing !== 0; ++i) {
      await one.keyboard.press("Tab");
      missing = await one.evaluate(() => {
        const element = document.activeElement;
        if (element && element !== document.body) {
          element.dataset.seen = "yes";
          const style = getComputedStyle(element);
          if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) return -1;
        }
        return [...document.querySelectorAll("a[href], button:enabled, [tabindex='0']")].filter(
          (e) => e.getClientRects().length > 0 && !e.dataset.seen,
        ).length;
      });
      assert.notEqual(missing, -1, `${name}: the focus cannot be seen`);
    }
    assert.equal(missing, 0, `${name}: cannot be reached with the Tab key`);
  }
  await go(one, "#/", ".cards");
  await one.focus(`table[aria-label=Batches] tr[data-key="${batch.batch}"] a`);
  await one.keyboard.press("Enter");
  await one.waitForSelector("table[aria-label=Outcomes]");
  await one.goBack();
  await one.waitForSelector(".cards");
  say("everything can be reached and opened with the keyboard, and the way back works");
}

// ---- no other origin, no errors
assert.deepEqual([...asked], [origin]);
say("nothing but the coordinator was asked");
assert.deepEqual(complaints, []);
say("the browser had nothing to complain of, the content policy among it");

// ---- the coordinator stands still, which closes no connection; last, because the browser complains of what follows
{
  await go(page, "#/", ".cards");
  const coordinator = Number(process.env.LOOPFLEET_COORDINATOR_PID);
  process.kill(coordinator, "SIGSTOP");
  await page.waitForSelector("main.stale .health-bad >> text=does not answer");
  process.kill(coordinator, "SIGCONT");
  await page.waitForFunction(() => !document.querySelector("main.stale"));
  say("while the coordinator does not answer, the page says so");
}
await browser.close();
