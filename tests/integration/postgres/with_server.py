"""Runs a program with a PostgreSQL server of its own, whose address is in LOOPFLEET_TEST_POSTGRES."""

import os
import subprocess
import sys

from postgres_server import PostgresServer, programs

SKIPPED = 77

if programs() is None:
    print("PostgreSQL is not installed (Debian: postgresql)")
    sys.exit(SKIPPED)
with PostgresServer() as server:
    sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, "LOOPFLEET_TEST_POSTGRES": server.url}, check=False).returncode)
