// The values of a job that is not timed.

import type { Observed } from "./facts";
import { short } from "./figure";
import { Facts } from "./table";

function text(value: Observed[string]): string {
  if (typeof value === "number") return short(value);
  if (typeof value === "string") return value;
  return value.map(short).join(" ");
}

export function ObservedFacts({ values }: { values: Observed }) {
  return <Facts facts={Object.entries(values).map(([name, value]) => [name.replaceAll("_", " "), text(value)])} />;
}
