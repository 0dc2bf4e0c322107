"""Every query of Grafana's dashboard of results, on a real PostgreSQL that a mirror filled, as the reading role."""

import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/integration"))
sys.path.insert(0, str(ROOT / "tests/integration/postgres"))
import fleet  # noqa: E402
from fleet import Fleet, clean_environment, program, small_jobs  # noqa: E402
from postgres_server import PostgresServer, programs  # noqa: E402

DASHBOARD = ROOT / "monitoring/grafana/dashboards/results.json"
SOURCES = ROOT / "monitoring/grafana/provisioning/datasources/loopfleet.yml"


def plain(sql, since="2020-01-01T00:00:00Z"):
    """The SQL that Grafana sends: its macros replaced as its documentation says, and its variable by all values."""
    sql = sql.replace("$__interval", "1h")
    sql = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN '{since}' AND '2100-01-01T00:00:00Z'", sql)
    sql = re.sub(r"\$__timeGroupAlias\((\w+), 1h\)", r'floor(extract(epoch from \1)/3600)*3600 AS "time"', sql)
    sql = sql.replace("($hardware_class)", "(SELECT hardware_class FROM loopfleet.conditions)")
    if "$" in sql:
        raise AssertionError(f"an unknown macro: {sql}")
    return sql


@unittest.skipIf(programs() is None, "PostgreSQL is not installed (Debian: postgresql)")
class ResultsDashboardTest(unittest.TestCase):
    def test_every_query_has_an_answer(self):
        dashboard = json.loads(DASHBOARD.read_text())
        role = re.search(r"(?s)```sql\n(CREATE ROLE reader.*?)```", (ROOT / "docs/POSTGRES.md").read_text())[1]
        self.assertIn("user: reader", SOURCES.read_text())
        self.assertIn(" LOGIN PASSWORD ", role)
        with PostgresServer() as server, Fleet() as running:
            running.submit([*small_jobs(4), {"benchmark": "benchmark://mm-v0/mm8_8_8", "actions": ["up"]}])
            # A busy host repeats the submission.
            outcomes = [json.loads(line)["status"] for line in running.command("export").stdout.splitlines()]
            self.assertGreaterEqual(len(outcomes), 5)
            done = subprocess.run([program("loopfleet-mirror"), "--db", str(running.database), "--once"],
                                  env=clean_environment(LOOPFLEET_RESULTS=server.url), capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            server.rows(role)

            def ask(sql):
                return server.rows(f"SET ROLE reader; {sql}")

            asked = 0
            for panel in dashboard["panels"]:
                for target in panel["targets"]:
                    with self.subTest(panel=panel["title"]):
                        self.assertNotIn(ask(plain(target["rawSql"])), ([], [[""]]))
                    asked += 1
            self.assertGreater(asked, 8)
            self.assertEqual(len(ask(dashboard["templating"]["list"][1]["query"])), 1)
            counts = {panel["title"]: panel["targets"][0]["rawSql"] for panel in dashboard["panels"]}
            self.assertEqual(ask(plain(counts["Outcomes"])), [[str(len(outcomes))]])
            self.assertEqual(ask(plain(counts["Outcomes"], since="2099-01-01T00:00:00Z")), [["0"]])
            self.assertAlmostEqual(float(ask(plain(counts["Share that failed"]))[0][0]),
                                   outcomes.count("failed") / len(outcomes))
            with self.assertRaisesRegex(AssertionError, "permission denied"):
                ask("DELETE FROM loopfleet.outcomes")


if __name__ == "__main__":
    fleet.main()
