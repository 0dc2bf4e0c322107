// A table that is a list of cards where there is no room for columns. It says by roles what it is,
// because a browser takes that from the layout.

import type { ComponentChildren } from "preact";

export interface Column<Row> {
  label: string;
  number?: boolean;
  cell: (row: Row) => ComponentChildren;
}

export function Table<Row>(props: {
  caption: string;
  rows: Row[];
  columns: Column<Row>[];
  keyOf: (row: Row) => string | number;
  empty: string;
}) {
  if (props.rows.length === 0) return <p class="empty">{props.empty}</p>;
  return (
    <table role="table" aria-label={props.caption}>
      <thead role="rowgroup">
        <tr role="row">
          {props.columns.map((column) => (
            <th role="columnheader" scope="col" class={column.number ? "number" : ""} key={column.label}>
              {column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {props.rows.map((row) => (
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
