"""Whether passes keep what programs do: loopfleet.llvm_semantics."""

import json
import os
import random
import signal
import subprocess
import sys
from functools import partial

import gymnasium as gym
import pytest

import loopfleet
from bitcode_files import bitcode_of
from loopfleet import llvm_semantics
from loopfleet.llvm_semantics import Output, check_semantics, run_bitcode, shortest_failing

PRINTS = "#include <stdio.h>\nint main(void) { printf(\"checksum = %d\\n\", 42); return 3; }"
OPENS = ("#include <fcntl.h>\n#include <stdio.h>\n"
         "int main(void) { int file = open(\"/etc/passwd\", O_RDONLY); printf(\"%d\\n\", file); return 0; }")
# A signed overflow has no meaning in C, so a pass may answer 1 where the processor answers 0.
OVERFLOWS = ("#include <stdio.h>\nint more(int x) { return x + 1 > x; }\n"
             "int main(void) { volatile int big = 2147483647; printf(\"%d\\n\", more(big)); return 0; }")


def test_a_program_is_run_and_confined():
    assert run_bitcode(bitcode_of(PRINTS), 5) == Output(3, b"checksum = 42\n")
    assert run_bitcode(bitcode_of(OPENS), 5) == Output(-signal.SIGSYS, b"")
    endless = run_bitcode(bitcode_of("int main(void) { for (volatile int i = 0;; ++i) {} }"), 1)
    assert not endless.in_time


def test_what_cannot_be_linked_is_not_checkable():
    with pytest.raises(llvm_semantics.NotCheckable, match="nowhere"):
        run_bitcode(bitcode_of("void nowhere(void); int main(void) { nowhere(); return 0; }"), 5)


def test_a_program_that_its_limits_end_is_not_checkable(client):
    result = check_semantics(client, client.add_program(bitcode_of(OPENS)), ["-mem2reg"])
    assert result.verdict == "not checkable" and "more than it may have" in result.reason


def test_the_shortest_sequence_fails_and_no_shorter_one_does():
    draw = random.Random(3)
    for _ in range(200):
        passes = draw.choices("abcdefgh", k=draw.randint(1, 40))
        needed = draw.choices("abc", k=draw.randint(1, 4))

        def fails(some):
            rest = iter(some)
            return all(each in rest for each in needed)  # in this order

        if not fails(passes):
            continue
        found = shortest_failing(passes, fails)
        assert found == needed


def test_csmith_programs_keep_their_checksum(client):
    passes = ["-mem2reg", "-gvn", "-simplifycfg", "-licm", "-inline"]
    found = check_semantics(client, "generator://csmith-v0/5", passes)
    assert found.verdict == "equal" and b"checksum" in found.before.text
    result = check_semantics(client, "generator://csmith-v0/5", ["-sancov"])
    assert result.verdict == "not checkable" and "-sancov" in result.reason


def test_another_output_comes_with_the_shortest_sequence(tmp_path, monkeypatch):
    source = tmp_path / "overflow.bc"
    source.write_bytes(bitcode_of(OVERFLOWS))
    programs = tmp_path / "programs"
    command = [loopfleet.local_cluster.find_program(), "llvm", "add", str(source), "--llvm-programs", str(programs)]
    uri = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    with loopfleet.LocalCluster(llvm_programs=programs) as cluster, cluster.client() as client:
        found = check_semantics(client, uri, ["-dce", "-mem2reg", "-simplifycfg", "-instsimplify", "-adce", "-dce"])
        assert found.verdict == "differs"
        assert (found.before.text, found.after.text) == (b"0\n", b"1\n")
        assert found.shortest == ("-mem2reg", "-instsimplify")
        # What `loopfleet llvm check` says.
        check = [loopfleet.local_cluster.find_program(), "llvm", "check", uri, "--address", cluster.address, "--passes"]
        run = partial(subprocess.run, capture_output=True, text=True,
                      env={**os.environ, "LOOPFLEET_PYTHON": sys.executable})
        said = run([*check[:-1], "--passes=-dce,-mem2reg,-instsimplify"])
        assert (said.returncode, said.stderr) == (1, "")
        assert said.stdout.splitlines()[-1] == "the shortest such passes: -mem2reg,-instsimplify"
        equal = run([*check, "mem2reg", "--json"])
        assert equal.returncode == 0 and json.loads(equal.stdout)["verdict"] == "equal"
        assert json.loads(equal.stdout)["before"] == {"status": 0, "text": "0\n", "in_time": True}
        runtime = run([*check, "sancov", "--json"])
        assert runtime.returncode == 65 and json.loads(runtime.stdout)["verdict"] == "not checkable"
        refused = run([*check, "mem2rg"])
        assert refused.returncode == 1 and "nearest: -mem2reg" in refused.stderr
        unanswered = run([*check[:4], "--address", "tcp://127.0.0.1:1", "--passes", "gvn", "--timeout", "1"])
        assert unanswered.returncode in (69, 75), unanswered
        # What the environment makes of it.
        monkeypatch.setattr(llvm_semantics, "CHECKABLE", ("bitcode://",))
        env = gym.make("llvm-ic-v0", benchmark=uri, client=client).unwrapped
        env.reset()
        env.step([env.action_space[flag] for flag in ("-mem2reg", "-instsimplify")])
        result = env.validate()
        assert result.benchmark_semantics_validation_failed and not result.okay()
        assert result.reward_validated and "-mem2reg,-instsimplify" in result.errors[0]
        assert env.validate(semantics=False).okay()
