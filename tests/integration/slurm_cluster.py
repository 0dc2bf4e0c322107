"""A Slurm cluster of one node on this machine, for tests: a private munged, slurmctld and slurmd with their
own configuration, keys, sockets and ports, on loopback. The end of the `with` block stops them. Without
accounting and cgroups: tests use Slurm's queue, signals and time limits. Needs root, as slurmd does."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import fleet

# Debian's packages: slurm-wlm (slurmctld, slurmd, slurm-client) and munge.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
# Time for a cancelled task to end by itself.
KILL_WAIT_S = 60

CONFIGURATION = """
ClusterName=loopfleet-test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/munge/socket
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=3600
MessageTimeout=100
KillWait={kill_wait_s}
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Never read with these plugins, but slurmd requires a configuration, and this one mounts nothing.
CGROUPS = """
CgroupPlugin=cgroup/v1
CgroupMountpoint={dir}/cgroup
CgroupAutomount=no
"""


# Another program may take a port before Slurm's does.
TRIES = 3


class CannotRun(Exception):
    """This machine cannot run Slurm. The text names the program and the reason."""


class DaemonEnded(Exception):
    """One of Slurm's daemons ended before it worked."""


def find(name):
    path = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if path is None:
        raise CannotRun(f"{name} is not installed (Debian: slurm-wlm, munge)")
    return path


class SlurmCluster:
    def __init__(self):
        for name in PROGRAMS:
            find(name)
        if os.geteuid() != 0:
            raise CannotRun("slurmd runs as root only")
        for left in reversed(range(TRIES)):
            try:
                self._start_all()
                return
            except DaemonEnded:
                if left == 0:
                    raise

    def _start_all(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="lf-slurm-"))
        self.daemons = []
        try:
            self._configure()
            self._start_munge()
            self._start("slurmctld", "-D", "-i", "-f", self.configuration)
            self._start("slurmd", "-D", "-f", self.configuration)
            self._await(lambda: "idle" in self.call("sinfo", "--noheader", "--format=%t"),
                        "the node is idle")
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if len(self.daemons) == 3 and all(process.poll() is None for _, process in self.daemons):
            self.end_jobs()
        for _, process in reversed(self.daemons):
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.dir)

    @property
    def environment(self):
        """The environment that makes Slurm's programs use this cluster."""
        return {"SLURM_CONF": str(self.configuration)}

    def call(self, *arguments, check=True):
        done = subprocess.run([find(arguments[0]), *arguments[1:]], text=True, capture_output=True,
                              timeout=fleet.COMMAND_LIMIT_S,
                              env={**os.environ, **self.environment})
        if check and done.returncode != 0:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout

    def tasks(self):
        """The state of each task in Slurm's queue, by its id ("12_0")."""
        listed = self.call("squeue", "--noheader", "--array", "--format=%F_%K %T").split("\n")
        return dict(line.split() for line in listed if line)

    def _configure(self):
        self.dir.chmod(0o755)  # munged refuses a folder that others may write to
        for name in ("munge", "state", "spool", "cgroup"):
            (self.dir / name).mkdir(mode=0o755)
        key = self.dir / "munge" / "key"
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(1024))
        self.configuration = self.dir / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], dir=self.dir, kill_wait_s=KILL_WAIT_S,
            controller_port=fleet.free_port(), node_port=fleet.free_port()))
        (self.dir / "cgroup.conf").write_text(CGROUPS.format(dir=self.dir))

    def _start_munge(self):
        munge = self.dir / "munge"
        self._start("munged", "--foreground", "--force", f"--key-file={munge}/key",
                    f"--socket={munge}/socket", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self._await((munge / "socket").exists, "munged listens")

    def _start(self, name, *arguments):
        log = self.dir / f"{name}.log"
        with open(log, "wb") as output:
            self.daemons.append((log, subprocess.Popen(
                [find(name), *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, env={**os.environ, **self.environment},
                preexec_fn=fleet.die_with_parent)))

    def _await(self, condition, what):
        """Waits for a condition. If a daemon ends meanwhile, raises DaemonEnded."""
        def look():
            try:
                if condition():
                    return True
            except RuntimeError:  # the controller does not answer yet
                pass
            for log, process in self.daemons:
                if process.poll() is not None:
                    raise DaemonEnded(f"{log.stem} ended with {process.returncode}:\n"
                                      f"{log.read_text()[-2000:]}")
            return False
        fleet.wait_until(look, what)

    def end_jobs(self):
        """Ends the jobs that a failed test left: slurmd's children would outlive it."""
        subprocess.run([find("scancel"), "--signal=KILL", "--full", "--user=root"],
                       env={**os.environ, **self.environment}, capture_output=True, timeout=60)
        subprocess.run([find("scancel"), "--user=root"], env={**os.environ, **self.environment},
                       capture_output=True, timeout=60)
        try:
            fleet.wait_until(lambda: not self.tasks(), "Slurm's jobs end")
        except (TimeoutError, RuntimeError) as error:
            print(f"slurm: {error}")
