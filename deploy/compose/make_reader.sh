#!/bin/bash
# Run once by PostgreSQL's image, in the new database: the role that reads, also what the mirror makes later.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -v password="$LOOPFLEET_READER_PASSWORD" <<'SQL'
CREATE ROLE reader LOGIN PASSWORD :'password';
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO reader;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader;
SQL
