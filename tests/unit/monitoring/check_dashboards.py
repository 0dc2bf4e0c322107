#!/usr/bin/env python3
"""Checks the Grafana dashboards: each query of Prometheus parses, uses only existing metrics, labels and
recorded series, and no data source of its own; panels and dashboards have unique ids; panels do not overlap.
Queries in SQL run in integration.results_dashboard.

    check_dashboards.py SOURCE_DIR WRITE_METRICS    needs promtool; exit status 77 without it
    check_dashboards.py --self-test                 plants each kind of mistake and expects a report of it
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
VARIABLES = {"$__rate_interval": "5m", "$instance": ".*"}
# Series made by Prometheus itself.
BUILT_IN = {"ALERTS"}
TARGET_LABELS = {"instance", "job", "le", "alertname", "alertstate"}


def asks_sql(dashboard):
    return any(variable["type"] == "datasource" and variable["query"] == "postgres"
               for variable in dashboard["templating"]["list"])


def queries(dashboard):
    """Yields (where, expression) for every query of Prometheus in a dashboard."""
    if asks_sql(dashboard):
        return
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield f"panel '{panel['title']}'", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield f"annotation '{annotation['name']}'", annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            yield f"variable '{variable['name']}'", f"count by ({asked[2]}) ({asked[1]})"


def plain(expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


def check_shape(dashboard):
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "two panels have one id"
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        if cells & taken:
            yield f"panel '{panel['title']}' lies on another one"
        if place["x"] + place["w"] > 24:
            yield f"panel '{panel['title']}' is wider than the screen"
        taken |= cells
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        if any(source["uid"] != "${datasource}" for source in sources):
            yield f"panel '{panel['title']}' names a data source of its own"
        kind = "postgres" if asks_sql(dashboard) else "prometheus"
        if any(source["type"] != kind for source in sources):
            yield f"panel '{panel['title']}' asks no {kind}"
        if not panel["targets"]:
            yield f"panel '{panel['title']}' asks nothing"
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    for where, expression in queries(dashboard):
        for name in re.findall(r"\$(\w+)", expression):
            if "$" + name not in VARIABLES or (name not in variables and not name.startswith("__")):
                yield f"{where}: ${name} is no variable of the dashboard"


def check_names(dashboard, names, labels):
    """Yields a problem for each unknown metric, recorded series or label in a query."""
    for where, expression in queries(dashboard):
        bare = re.sub(r'"[^"]*"', '""', plain(expression))
        for name in re.findall(r"\b(?:[a-z_]+:)?loopfleet_[a-z0-9_:]+|\bALERTS\b", bare):
            if name not in names and name not in BUILT_IN:
                yield f"{where}: there is no {name}"
        for name, matchers in re.findall(r"(loopfleet_[a-z0-9_]+)\{([^}]*)\}", bare):
            family = re.sub(r"_(bucket|count|sum)$", "", name)
            known = labels.get(name, labels.get(family, set())) | TARGET_LABELS
            for label in re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", matchers):
                if ":" not in name and name in names and label not in known:
                    yield f"{where}: {name} has no label {label}"


def check_syntax(dashboards):
    rules = [{"record": f"lint:query:n{i}", "expr": plain(expression)}
             for i, (_, expression) in enumerate(
                 query for dashboard in dashboards for query in queries(dashboard))]
    with tempfile.NamedTemporaryFile("w", suffix=".yml", encoding="utf-8") as file:
        json.dump({"groups": [{"name": "lint", "rules": rules}]}, file)  # JSON is YAML
        file.flush()
        done = subprocess.run(["promtool", "check", "rules", file.name], text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            yield done.stderr.strip()


def known_names(source, write_metrics):
    """Returns the names that a query may use, and the labels of each metric."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([write_metrics, folder], check=True)
        names = set(pathlib.Path(folder, "names").read_text(encoding="utf-8").split())
        table = pathlib.Path(folder, "table.md").read_text(encoding="utf-8")
    labels = {}
    for name, its_labels in re.findall(r"^\| `(\w+)(?:\{([\w,]+)\})?` \|", table, re.MULTILINE):
        labels[name] = set(filter(None, its_labels.split(",")))
    rules = (source / "monitoring/rules/loopfleet.yml").read_text(encoding="utf-8")
    return names | set(re.findall(r"record: (\S+)", rules)), labels


def check(dashboards, names, labels):
    found = []
    uids = [dashboard["uid"] for dashboard in dashboards.values()]
    if len(set(uids)) != len(uids):
        found.append("two dashboards have one uid")
    for path, dashboard in dashboards.items():
        for problem in [*check_shape(dashboard), *check_names(dashboard, names, labels)]:
            found.append(f"{path}: {problem}")
    return found + list(check_syntax(list(dashboards.values())))


def small_dashboard(expression="sum(loopfleet_workers)", **changes):
    source = {"type": changes.get("kind", "prometheus"), "uid": changes.get("uid", "${datasource}")}
    panel = {"id": 1, "title": "t", "datasource": source, "gridPos": {"x": 0, "y": 0, "w": 4, "h": 4},
             "targets": [{"expr": expression, "datasource": source}]}
    return {"uid": "u", "panels": [panel] * changes.get("panels", 1), "annotations": {"list": []},
            "templating": {"list": []}}


PLANTED = [
    (small_dashboard("sum(loopfleet_workres)"), "there is no loopfleet_workres"),
    (small_dashboard('loopfleet_workers{stat="x"}'), "has no label stat"),
    (small_dashboard("sum(loopfleet_workers"), "parse"),
    (small_dashboard("rate(loopfleet_workers[$__interval])"), "no variable"),
    (small_dashboard("loopfleet_workers{instance=~\"$instance\"}"), "no variable"),
    (small_dashboard(uid="abc"), "data source"),
    (small_dashboard(kind="postgres"), "asks no prometheus"),
    (small_dashboard(panels=2), "one id"),
    (small_dashboard("job:loopfleet_nothing:rate5m"), "there is no job:loopfleet_nothing:rate5m"),
]


def self_test():
    names, labels = {"loopfleet_workers"}, {"loopfleet_workers": {"state"}}
    problems = check({"clean": small_dashboard()}, names, labels)
    for dashboard, expected in PLANTED:
        found = check({"planted": dashboard}, names, labels)
        if not any(expected in problem for problem in found):
            problems.append(f"expected '{expected}', got {found}")
    return problems


def main():
    if shutil.which("promtool") is None:
        print("SKIPPED: promtool is not installed (Debian: prometheus); nothing was checked",
              file=sys.stderr)
        return SKIPPED
    if sys.argv[1:] == ["--self-test"]:
        found = self_test()
    else:
        source = pathlib.Path(sys.argv[1])
        files = sorted((source / "monitoring/grafana/dashboards").glob("*.json"))
        assert files, "no dashboards"
        dashboards = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in files}
        found = check(dashboards, *known_names(source, sys.argv[2]))
    print("\n".join(found) if found else "no problems", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
