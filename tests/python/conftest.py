"""Shared fixtures of the Python package's tests: one real cluster for each file that uses it."""

import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import Future

import pytest

import loopfleet

for name in [name for name in os.environ if name in ("LOOPFLEET_ADDRESS", "LOOPFLEET_CONFIG", "LOOPFLEET_KEYS")]:
    del os.environ[name]


@pytest.fixture(scope="module")
def cluster():
    with loopfleet.LocalCluster(workers=1) as running:
        yield running


def says_little(outcome):
    """Whether the host was too busy for a figure that tests can use."""
    return outcome.status == "UNSTABLE_TIMING" or outcome.ok and outcome.grade == "D"


class PatientClient(loopfleet.Client):
    """A client that repeats jobs while the host is too busy for a figure, which is no failure of the test."""

    def submit_jobs(self, jobs):
        jobs = list(jobs)
        return [self._patiently(job, first) for job, first in zip(jobs, super().submit_jobs(jobs))]

    def evaluate_many(self, jobs, *, timeout=None, on_outcome=None):
        jobs = list(jobs)
        outcomes = super().evaluate_many(jobs, timeout=timeout, on_outcome=on_outcome).outcomes
        while (again := [i for i, outcome in enumerate(outcomes) if says_little(outcome)]):
            for i, outcome in zip(again, super().evaluate_many([jobs[i] for i in again], timeout=timeout)):
                outcomes[i] = outcome
        return loopfleet.ResultBatch(outcomes)

    def _patiently(self, job, first):
        result = Future()

        def look(done):
            if done.exception() is not None:
                result.set_exception(done.exception())
            elif says_little(done.result()):
                loopfleet.Client.submit_jobs(self, [job])[0].add_done_callback(look)
            else:
                result.set_result(done.result())

        first.add_done_callback(look)
        return result


@pytest.fixture(scope="module")
def client(cluster):
    with PatientClient(cluster.address, timeout=300) as connected:
        yield connected


@pytest.fixture
def daemon():
    """daemon(NAME, *arguments): starts one of our programs; returns it and its ready line. ``within`` is a command
    that starts the program and becomes it. All are killed at the end."""
    started = []

    def start(name, *arguments, within=()):
        process = subprocess.Popen([*within, os.path.join(os.environ["LOOPFLEET_BIN"], name), *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def sockets():
    folder = tempfile.mkdtemp()  # a short path, as sockets need, private to this user
    yield folder
    shutil.rmtree(folder)
