// A table that is a list of cards where there is no room for columns. It says by roles what it is,
// because a browser takes that from the layout.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

export interface Column<Row> {
  label: string;
  title?: string; // what it means, where the label does not say it
  number?: boolean;
  cell: (row: Row) => ComponentChildren;
  order?: (row: Row) => number | string | null; // given: its head sorts by it; null comes last
}

interface Sorting {
  label: string;
  descending: boolean;
}

function sorted<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | null): Row[] {
  const order = columns.find((column) => column.label === sorting?.label)?.order;
  if (!sorting || !order) return rows;
  const sign = sorting.descending ? -1 : 1;
  return [...rows].sort((one, other) => {
    const a = order(one);
    const b = order(other);
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    return a === b ? 0 : a < b ? -sign : sign;
  });
}

// As given, until somebody sorts by a column. `most`: so many rows at first, the others on demand.
export function Table<Row>(props: {
  caption: string;
  rows: Row[];
  columns: Column<Row>[];
  keyOf: (row: Row) => string | number;
  empty: string;
  most?: number;
}) {
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [all, setAll] = useState(false);
  if (props.rows.length === 0) return <p class="empty">{props.empty}</p>;
  const most = props.most ?? props.rows.length;
  const rows = sorted(props.rows, props.columns, sorting).slice(0, all ? undefined : most);
  const head = (column: Column<Row>) => {
    if (!column.order) return column.label;
    const is_sorted = sorting?.label === column.label;
    // Numbers: the largest first.
    const descending = is_sorted ? !sorting.descending : column.number === true;
    return (
      <button class="sort" onClick={() => setSorting({ label: column.label, descending })}>
        {column.label}
        <span aria-hidden="true">{is_sorted ? (sorting.descending ? " ▾" : " ▴") : ""}</span>
      </button>
    );
  };
  const sortOf = (column: Column<Row>) =>
    sorting?.label !== column.label ? undefined : sorting.descending ? "descending" : "ascending";
  return (
    <>
      <table role="table" aria-label={props.caption}>
        <thead role="rowgroup">
          <tr role="row">
            {props.columns.map((column) => (
              <th
                role="columnheader"
                scope="col"
                class={column.number ? "number" : ""}
                title={column.title}
                aria-sort={sortOf(column)}
                key={column.label}
              >
                {head(column)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr role="row" key={props.keyOf(row)} data-key={props.keyOf(row)}>
              {props.columns.map((column) => (
                <td role="cell" data-label={column.label} class={column.number ? "number" : ""} key={column.label}>
                  <span>{column.cell(row)}</span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {props.rows.length > most ? (
        <button class="more" onClick={() => setAll(!all)}>
          {all ? `The first ${most} only` : `All ${props.rows.length}`}
        </button>
      ) : null}
    </>
  );
}

// Names and values, one below the other.
export function Facts(props: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {props.facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
