// The page: a head, and one of its screens by the address's hash, so that a screen can be linked to.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./page.css";
import { BatchPage } from "./batch";
import { JobPage } from "./job";
import { type Connection, useOverview } from "./live";
import { FailureTable, HealthLine, OverviewPage } from "./overview";
import type { Overview } from "./facts";
import { WorkerPage, WorkersPage } from "./worker";

const CONNECTIONS: Record<Connection, string> = {
  connecting: "connecting",
  live: "live",
  asking: "every 5 s",
  lost: "no connection",
};

// Parts of the first screen that have an address of their own.
const PARTS = ["throughput", "pools", "batches", "best"];

function useHash(): string {
  const [hash, setHash] = useState(window.location.hash);
  useEffect(() => {
    const onChange = () => setHash(window.location.hash);
    window.addEventListener("hashchange", onChange);
    return () => window.removeEventListener("hashchange", onChange);
  }, []);
  return hash.replace(/^#\/?/, "");
}

function Screen({ path, overview }: { path: string; overview: Overview }) {
  const [what, id = ""] = path.split("/");
  const turn = overview.at_ms;
  if (what === "batch") return <BatchPage key={id} id={id} turn={turn} />;
  if (what === "job") return <JobPage key={id} id={id} turn={turn} />;
  if (what === "worker") return <WorkerPage key={id} id={id} turn={turn} />;
  if (what === "workers") return <WorkersPage turn={turn} />;
  if (what === "failures") return <FailureTable overview={overview} />;
  if (path === "" || PARTS.includes(path)) return <OverviewPage overview={overview} />;
  return (
    <p class="empty">
      There is no “{path}” here. <a href="#/">To the overview</a>
    </p>
  );
}

function Page() {
  const { overview, connection } = useOverview();
  const path = useHash();
  const main = useRef<HTMLElement>(null);
  const ready = overview !== null;
  useEffect(() => {
    const part = PARTS.includes(path) ? document.getElementById(path) : null;
    if (part) {
      part.scrollIntoView();
    } else {
      window.scrollTo(0, 0);
    }
  }, [path, ready]);
  const here = path.split("/")[0] ?? "";
  const link = (to: string, name: string, places: string[]) => (
    <a href={`#/${to}`} aria-current={places.includes(here) ? "page" : undefined}>
      {name}
    </a>
  );
  return (
    <>
      <button class="skip" onClick={() => main.current?.focus()}>
        To the content
      </button>
      <header>
        <a class="brand" href="#/">
          <img src="/icon.svg" alt="" width="22" height="22" /> loopfleet
        </a>
        <nav aria-label="Screens">
          {link("", "Overview", ["", "batch", "job", ...PARTS])}
          {link("workers", "Workers", ["workers", "worker"])}
          {link("failures", "Failures", ["failures"])}
        </nav>
        <span class={`live live-${connection}`} role="status" aria-live="polite">
          <span class="live-dot" aria-hidden="true" /> {CONNECTIONS[connection]}
        </span>
      </header>
      <main ref={main} tabIndex={-1} class={connection === "lost" ? "stale" : ""}>
        {overview && connection === "lost" ? (
          <HealthLine
            state="bad"
            sentence={`The coordinator does not answer. All this is as of ${new Date(overview.at_ms).toLocaleTimeString()}.`}
            link=""
          />
        ) : null}
        {overview ? <Screen path={path} overview={overview} /> : <p class="empty">Waiting for the coordinator …</p>}
      </main>
      {overview ? (
        <footer>
          {overview.coordinator}, loopfleet {overview.version}, start {overview.epoch}
        </footer>
      ) : null}
    </>
  );
}

const place = document.getElementById("page");
if (place) {
  place.replaceChildren();
  render(<Page />, place);
}
