// A uPlot chart in the colours of the page, as wide as its place. What it shows is said in words
// beside it, for those who do not see it.

import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface Line {
  label: string;
  color: "accent" | "bad" | "warning";
  points?: boolean; // no line, only points
  fill?: boolean;
}

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Samples are counted: there is no half of one.
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const clock = (at_s: number): string => new Date(at_s * 1000).toLocaleTimeString("en-GB");

function useScheme(): boolean {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return dark;
}

export function Chart(props: {
  label: string;
  lines: Line[];
  data: uPlot.AlignedData;
  height: number;
  time: boolean;
  value: (value: number) => string;
  fromZero?: boolean;
}) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const dark = useScheme();
  const shape = JSON.stringify(props.lines);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const axis = {
      stroke: color("quiet"),
      grid: { stroke: color("line"), width: 1 },
      ticks: { stroke: color("line"), width: 1 },
      font: "12px system-ui, sans-serif",
    };
    const options: uPlot.Options = {
      width: element.clientWidth,
      height: props.height,
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      legend: { live: true },
      scales: {
        x: { time: props.time },
        y: {
          range: (_self, low, high) => {
            if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
            if (props.fromZero) return [0, Math.max(high * 1.1, 1)];
            const room = Math.max((high - low) * 0.1, high * 0.01);
            return [low - room, high + room];
          },
        },
      },
      axes: [
        props.time ? { ...axis, values: (_self, ticks) => ticks.map(clock), space: 70 } : { ...axis, incrs: WHOLE },
        { ...axis, size: 64, values: (_self, ticks) => ticks.map((tick) => props.value(tick)) },
      ],
      series: [
        props.time
          ? { label: "at", value: (_self: uPlot, at: number | null) => (at === null ? "–" : clock(at)) }
          : { label: "sample" },
        ...props.lines.map((line) => ({
          label: line.label,
          stroke: color(line.color),
          fill: line.fill ? color(line.color) + "22" : undefined,
          width: line.points ? 0 : 1.5,
          paths: line.points ? () => null : undefined,
          points: { show: line.points ?? false, size: 7, fill: color(line.color) },
          value: (_self: uPlot, value: number | null) => (value === null ? "–" : props.value(value)),
        })),
      ],
    };
    const made = new uPlot(options, props.data, element);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth !== made.width) made.setSize({ width: element.clientWidth, height: props.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, dark]);
  useEffect(() => plot.current?.setData(props.data), [props.data]);
  return <div class="chart" role="img" aria-label={props.label} ref={place} />;
}
