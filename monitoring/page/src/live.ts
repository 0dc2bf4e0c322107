// Where facts come from: the live stream of the first screen, and single questions, which are asked
// again while what they are about may change.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Overview } from "./facts";

export type Connection = "connecting" | "live" | "asking" | "lost";

const ASK_AGAIN_MS = 5000;
// The coordinator sends at least every 5 s. After this long without a word it is stopped or cut off.
const MOST_SILENCE_MS = 15_000;

async function ask<T>(path: string, signal?: AbortSignal): Promise<T> {
  const reply = await fetch(path, { signal });
  const body = await reply.json();
  if (!reply.ok) throw new Error(body?.error?.message ?? `${path}: ${reply.status}`);
  return body as T;
}

// The newest overview. Where the coordinator has no room for another live watcher, it is asked for
// every few seconds instead.
export function useOverview(): { overview: Overview | null; connection: Connection } {
  const [overview, setOverview] = useState<Overview | null>(null);
  const [connection, setConnection] = useState<Connection>("connecting");
  useEffect(() => {
    let timer = 0;
    let silence = 0;
    let over = false;
    let source: EventSource | null = null;
    const watch = () => {
      source = new EventSource("/api/live");
      source.onmessage = (event) => {
        setOverview(JSON.parse(event.data));
        setConnection("live");
        window.clearTimeout(silence);
        silence = window.setTimeout(() => setConnection("lost"), MOST_SILENCE_MS);
      };
      source.onerror = () => {
        if (source?.readyState === EventSource.CLOSED) {
          poll();
        } else {
          setConnection("lost");
        }
      };
    };
    const poll = () => {
      ask<Overview>("/api/overview").then(
        (answer) => {
          if (over) return;
          setOverview(answer);
          setConnection("asking");
          timer = window.setTimeout(watch, ASK_AGAIN_MS);
        },
        () => {
          if (over) return;
          setConnection("lost");
          timer = window.setTimeout(watch, ASK_AGAIN_MS);
        },
      );
    };
    watch();
    return () => {
      over = true;
      source?.close();
      window.clearTimeout(timer);
      window.clearTimeout(silence);
    };
  }, []);
  return { overview, connection };
}

// The answer to one question, asked again with each `turn`; the last one stays until the next is in.
export function useAnswer<T>(path: string, turn: unknown): { answer: T | null; error: string | null } {
  const [state, setState] = useState<{ path: string; answer: T | null; error: string | null }>({
    path,
    answer: null,
    error: null,
  });
  const askAgain = useRef(() => {});
  useEffect(() => {
    const abort = new AbortController();
    let isAsking = false;
    let isDue = false;
    // Turns may come quicker than answers: one that comes while a question is under way waits for its answer.
    const askOnce = () => {
      isDue = isAsking;
      if (isAsking) return;
      isAsking = true;
      const request = new AbortController();
      const end = () => request.abort();
      abort.signal.addEventListener("abort", end);
      const limit = window.setTimeout(() => request.abort(new Error("no answer for 15 s")), 15_000);
      ask<T>(path, request.signal)
        .then(
          (answer) => setState({ path, answer, error: null }),
          (error: Error) => {
            if (error.name !== "AbortError") setState((old) => ({ ...old, path, error: error.message }));
          },
        )
        .then(() => {
          window.clearTimeout(limit);
          abort.signal.removeEventListener("abort", end);
          isAsking = false;
          if (isDue && !abort.signal.aborted) askOnce();
        });
    };
    askAgain.current = askOnce;
    return () => abort.abort();
  }, [path]);
  useEffect(() => askAgain.current(), [path, turn]);
  // What was answered about something else is not shown.
  return state.path === path ? state : { answer: null, error: null };
}
