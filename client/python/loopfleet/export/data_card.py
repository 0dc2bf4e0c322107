"""The card of a data set: its README.md."""

from __future__ import annotations

import json
from typing import Any

from .. import _core
from ..rows import FIELDS, SUSPECT
from ..splits import PARTS


def card(facts: dict[str, Any]) -> str:
    """The README.md, in the layout that `datasets.load_dataset(folder)` reads."""
    extension = facts["format"]
    parts = "".join(f"  - split: {part}\n    path: data/{part}.{extension}\n" for part in PARTS
                    if facts["rows"].get(part))
    counts = "".join(f"| {part} | {facts['rows'].get(part, 0):,} |\n" for part in PARTS)
    advice = {name: text for _, name, _, text in _core.failure_codes()}
    statuses = "".join(f"| {code} | {count:,} | {advice.get(code, 'measured')} |\n"
                       for code, count in sorted(facts["statuses"].items()))
    meaning = {"A": "two moments agree within 1 %", "B": "within 5 %", "C": "worse", "D": "an order of magnitude"}
    grades = "".join(f"| {grade} | {count:,} | {meaning.get(grade, '')} |\n" for grade, count in facts["grades"].items())
    figures = "No row has a figure." if facts["gflops_range"] is None else (
        f"From {facts['gflops_range'][0]:.4g} to {facts['gflops_range'][1]:.4g} GFLOP/s; the interval of about 95 % is "
        f"±{100 * facts['median_spread']:.2g} % (median). Leave grades out that are too coarse for your question.\n\n"
        f"| grade | rows | |\n|---|---|---|\n{grades}")
    reader = {"parquet": "read_parquet('data/train.parquet')", "csv": "read_csv('data/train.csv')",
              "jsonl": "read_json('data/train.jsonl', lines=True)"}[extension]
    licence = f"license: {facts['licence'].lower()}\n" if facts["licence"] else ""
    drawn = ""
    if facts["campaign"]:
        given = "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts["campaign"].items())
        drawn = f"""
## How the points were drawn

Rows that are points of this campaign: {facts["campaign_rows"]:,} of {sum(facts["rows"].values()):,}.

Each point is a benchmark, drawn evenly from the list, and a walk of uniformly drawn legal actions, whose length is drawn
evenly between `min_length` and `max_length`. The same file gives the same points:

```toml
{given}```
"""
    hardware = "".join(f"- {model} (class `{kind}`)\n" for kind, model in facts["hardware"])
    compilers = "".join(f"- LLVM {llvm}, tier {tier}, lowering {lowering}\n"
                        for llvm, tier, lowering in facts["compilers"])
    columns = "".join(f"| `{name}` | {FIELDS[name]} |\n" for name in facts["columns"])
    doubts = "" if SUSPECT in facts["columns"] else f"""
Which figures were doubted after they were measured stands in the coordinator's database file alone, so
there is no column `{SUSPECT}`: an export of that file has it.
"""
    total = sum(facts["rows"].values())
    return f"""---
pretty_name: {json.dumps(facts["name"])}
{licence}tags:
- compilers
- performance
- loop-schedules
configs:
- config_name: default
  data_files:
{parts}---

# {facts["name"]}

{_core.counted(total, "loop schedule", "loop schedules")} ({facts["statuses"].get("ok", 0):,} measured) of {_core.counted(facts["programs"], "program", "programs")}, made by {facts["made_by"]} on {facts["made_at"]}
from {facts["source"] or "outcomes in memory"}; measured from {facts["finished"][0] or "-"} to {facts["finished"][1] or "-"}.

Every figure is of a kernel whose output was compared with a reference before and after it was timed. Rows that failed
are kept: they have a code in `status` and no figures, never zeros. `CUT` rows are censored: slower than a bound that
their job gave.

```python
import pandas
train = pandas.{reader}
print(train[train.status == "ok"].groupby("grade").gflops.describe())
```

## Figures

{figures}{drawn}
## Parts

Rows are split by the hash of their **{facts["split"]}** (seed {facts["seed"]}, shares {list(facts["shares"])}), so no
{facts["split"]} is in two parts, and adding rows moves none.

| part | rows |
|---|---|
{counts}
{"Duplicate questions were left out: " + format(facts["duplicates_left_out"], ",") + "." if facts["dedup"] else
 "Duplicate questions were kept."}

| status | rows | |
|---|---|---|
{statuses}
## Hardware and compilers

{hardware}{compilers}
## Columns

| column | meaning |
|---|---|
{columns}{doubts}
`SHA256SUMS` has the checksum of every file, `provenance.json` the facts above for programs.
"""
