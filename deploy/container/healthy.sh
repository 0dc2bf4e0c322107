#!/bin/bash
# healthy.sh PORT: whether the daemon in this container says 200 at /livez, so whatever restarts containers
# that are not healthy restarts none over what a restart does not mend, as a full disk. No curl in the image.
set -euo pipefail
exec 3<>"/dev/tcp/127.0.0.1/${1:?the port of --http}"
printf 'GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
read -r _ status _ <&3
[ "$status" = 200 ]
