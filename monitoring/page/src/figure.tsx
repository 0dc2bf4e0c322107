// Figures as people read them; each keeps its exact value for machines.

import type { ComponentChildren } from "preact";

const SIZES: [number, string][] = [
  [1e9, " s"],
  [1e6, " ms"],
  [1e3, " µs"],
  [1, " ns"],
];

export function short(value: number): string {
  if (value === 0 || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return value.toLocaleString("en");
  if (size >= 1e6) return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 4 });
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 4 : 3 });
}

export function duration(ns: number): string {
  for (const [size, unit] of SIZES) {
    if (ns >= size) return short(ns / size) + unit;
  }
  return short(ns) + " ns";
}

export function span(seconds: number): string {
  if (seconds < 1) return "less than 1 s";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${short(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const ago = (then_ms: number, now_ms: number): string => `${span(Math.max(0, (now_ms - then_ms) / 1000))} ago`;

export function Figure(props: { value: number | null | undefined; unit?: string; as?: (value: number) => string }) {
  if (props.value === null || props.value === undefined) return <span class="none">–</span>;
  const text = (props.as ?? short)(props.value);
  return (
    <data value={String(props.value)}>
      {text}
      {props.unit ? <span class="unit"> {props.unit}</span> : null}
    </data>
  );
}

export const percent = (part: number): string => `${(part * 100).toLocaleString("en", { maximumSignificantDigits: 2 })} %`;

export function Grade(props: { grade: string | null | undefined }) {
  if (!props.grade) return <span class="none">–</span>;
  const meaning = { A: "within 1 %", B: "within 5 %", C: "worse than 5 %" }[props.grade] ?? "";
  return (
    <span class={`grade grade-${props.grade}`} title={meaning}>
      {props.grade}
    </span>
  );
}

export function State(props: { state: string; children?: ComponentChildren }) {
  return <span class={`state state-${props.state}`}>{props.children ?? props.state}</span>;
}

// A job's number leads to the job, and stays in one line.
export const JobLink = (props: { job: string }) => (
  <a class="whole" href={`#/job/${props.job}`}>
    {props.job}
  </a>
);

// "benchmark://mm-v0/mm64_64_64" is "mm-v0/mm64_64_64" where there is little room.
export const benchmarkName = (uri: string | null): string => uri?.replace("benchmark://", "") ?? "a program of its own";
