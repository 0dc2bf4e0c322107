"""PostgresServer: a real PostgreSQL in a folder of its own, on a socket there and on a port of loopback."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402

STARTS_WITHIN_S = 60


def programs():
    """The folder of initdb and postgres; None: not installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return pathlib.Path(initdb).parent if initdb else None


def _account():
    """PostgreSQL refuses to run as root: its own account then."""
    return pwd.getpwnam("postgres") if os.getuid() == 0 else None


class PostgresServer:
    def __init__(self, settings=()):
        """`settings`: texts NAME=VALUE, beside PostgreSQL's defaults."""
        self.settings = settings
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lf-pg-"))
        self.account = _account()
        if self.account:
            os.chown(self.folder, self.account.pw_uid, self.account.pw_gid)
        self.process = None
        self.log = open(self.folder / "log", "ab")  # noqa: SIM115
        self.port = fleet.free_port()
        self._run("initdb", "-D", str(self.folder / "data"), "-U", "postgres", "-A", "trust", "--no-sync")
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder)

    @property
    def url(self):
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self):
        self.process = subprocess.Popen(
            self._as_account([str(programs() / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port),
                              "-k", str(self.folder), *self._options()]),
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=self.log, preexec_fn=fleet.die_with_parent,
            start_new_session=True)
        end = time.monotonic() + STARTS_WITHIN_S
        while self._psql("SELECT 1").returncode != 0:
            if time.monotonic() > end:
                raise AssertionError((self.folder / "log").read_text())
            time.sleep(0.05)

    def kill(self):
        """As a loss of power would, but for the disk: no process of it is left."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # a fast shutdown
            self.process.wait(60)

    def rows(self, sql):
        """The rows of a query, each a list of texts."""
        done = self._psql(sql)
        if done.returncode != 0:
            raise AssertionError(f"{sql}: {done.stderr}")
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def value(self, sql):
        return self.rows(sql)[0][0]

    def popen(self, sql):
        """A client that runs this; its errors are not shown."""
        return subprocess.Popen(self._psql_command(sql), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                preexec_fn=fleet.die_with_parent)

    def _options(self):
        return [word for setting in ("listen_addresses=127.0.0.1", *self.settings) for word in ("-c", setting)]

    def _psql(self, sql):
        return subprocess.run(self._psql_command(sql), capture_output=True, text=True, check=False)

    def _psql_command(self, sql):
        return [str(programs() / "psql"), "-XAtq", "-F", "\x1f", "-d", self.url, "-c", sql]

    def _run(self, program, *arguments):
        subprocess.run(self._as_account([str(programs() / program), *arguments]), cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def _as_account(self, command):
        if self.account is None:
            return command
        return ["setpriv", "--pdeathsig=KILL", f"--reuid={self.account.pw_uid}", f"--regid={self.account.pw_gid}", "--clear-groups",
                *command]
