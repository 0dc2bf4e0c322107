"""LlvmEnv.make_benchmark: programs of source files, on a real cluster."""

import hashlib
import os
import shutil
import stat

import gymnasium as gym
import pytest

from bitcode_files import bitcode_of
from loopfleet import BenchmarkInitError, DeadlineExceeded, compiler_gym
from loopfleet.compiler_gym.datasets import BenchmarkInitError as CompilerGyms

SQUARE = "int square(int x) { int y = x;\n#ifdef TWICE\n y = y + y;\n#endif\n return y * y; }"
CUBE = "int square(int); int cube(int x) { return square(x) * x; }"
SUM = """#include <vector>
template <class T> T sum_of(const std::vector<T>& values) {
  T sum{};
  for (const T& each : values) sum += each;
  return sum;
}
double sum(const std::vector<double>& values) { return sum_of(values); }"""


@pytest.fixture
def env(client):
    return gym.make("loopfleet/LLVM-v0", reward_space="IrInstructionCount", client=client).unwrapped


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path
    return write


@pytest.fixture
def half(write):
    return write("half.bc", bitcode_of("int half(int x) { return x / 2; }"))


def count_of(env, benchmark):
    env.reset(benchmark=benchmark)
    return int(env.observation["IrInstructionCount"])


def test_a_c_file_is_a_benchmark_that_passes_work_on(client, env, write):
    benchmark = env.make_benchmark(write("square.c", SQUARE))
    assert benchmark == f"bitcode://sha256/{hashlib.sha256(benchmark.bitcode).hexdigest()}" == benchmark.uri
    env.reset(benchmark=benchmark)
    assert "noinline" not in env.observation["Ir"] and "optnone" not in env.observation["Ir"]
    assert int(env.observation["IrInstructionCount"]) - env.step(env.action_space["-mem2reg"])[1] == 2
    # It was sent at once: its URI alone is a program, too.
    job = {"benchmark": str(benchmark), "passes": ["-mem2reg"], "observe": ["IrInstructionCount"]}
    assert client.evaluate_many([job]).outcomes[0].ok
    older = compiler_gym.make("llvm-ic-v0", benchmark=env.make_benchmark(str(write("other.c", SQUARE))), client=client)
    assert older.reset() is None and older.step(older.action_space["-mem2reg"])[1] > 0


def test_cpp_is_compiled_as_such(env, write):
    benchmark = env.make_benchmark([write("sum.cc", SUM)])
    env.reset(benchmark=benchmark)
    assert "_Z3sumRKSt6vectorIdSaIdEE" in env.observation["Ir"]


def test_several_files_are_linked(env, write, half):
    square, cube = write("square.c", SQUARE), write("cube.cpp", f'extern "C" {{ {CUBE} }}')
    each = [count_of(env, env.make_benchmark(path)) for path in (square, cube, half)]
    together = env.make_benchmark([square, str(cube), half])
    assert count_of(env, together) == sum(each)
    assert env.observation["Ir"].count("define ") == 3 and "declare i32 @square" not in env.observation["Ir"]
    assert env.make_benchmark(half).bitcode == half.read_bytes()
    with pytest.raises(BenchmarkInitError, match="llvm-link-19 .*square.*multiply defined"):
        env.make_benchmark([square, write("again.c", SQUARE)])


def test_copt_are_arguments_of_clang(env, write, tmp_path):
    source = write("square.c", f'#include "name.h"\n{SQUARE}')
    (tmp_path / "headers").mkdir()
    write("headers/name.h", "#define square renamed")
    headers = f"-I{tmp_path / 'headers'}"
    once = count_of(env, env.make_benchmark(source, [headers]))
    assert "@renamed" in env.observation["Ir"]
    assert count_of(env, env.make_benchmark(source, copt=[headers, "-DTWICE"])) > once
    with pytest.raises(TypeError, match=r"such as \['-O1', '-DTWICE'\]"):
        env.make_benchmark(source, "-O1 -DTWICE")


def test_what_does_not_compile_has_clangs_message(env, write):
    source = write("wrong.c", "int f(void) { return y; }")
    with pytest.raises(BenchmarkInitError, match="(?s)clang-19 ended with 1: .*wrong.c:1:22: error: use of") as raised:
        env.make_benchmark(source)
    assert isinstance(raised.value, OSError) and CompilerGyms is BenchmarkInitError
    with pytest.raises(DeadlineExceeded, match="clang-19 did not end in time"):
        env.make_benchmark(write("square.c", SQUARE), timeout=0)


def test_files_that_are_no_programs(env, write, tmp_path):
    with pytest.raises(FileNotFoundError, match="none.c"):
        env.make_benchmark([write("square.c", SQUARE), tmp_path / "none.c"])
    with pytest.raises(ValueError, match="square.f90 is of no kind that can be compiled; valid: .c, .cc"):
        env.make_benchmark(write("square.f90", ""))
    with pytest.raises(ValueError, match="no LLVM bitcode"):
        env.make_benchmark(write("text.bc", "define void @f()"))
    with pytest.raises(ValueError, match="no files"):
        env.make_benchmark([])


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """tools(name, version) adds a program to PATH, which has no others. It says that it is of this version."""
    folder = tmp_path / "tools"
    folder.mkdir()
    real = shutil.which("clang-19")
    monkeypatch.setenv("PATH", str(folder))

    def tools(name, version):
        program = folder / name
        program.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "Some clang version {version}.1.0 (x)"; '
                           f'else exec {real} "$@"; fi\n')
        os.chmod(program, stat.S_IRWXU)
    return tools


def test_a_compiler_that_the_workers_understand_is_looked_for(env, write, half, tools):  # tools last: it sets PATH
    square = write("square.c", SQUARE)
    with pytest.raises(BenchmarkInitError, match="no clang of version 14 to 19 .*apt-get install clang-19"):
        env.make_benchmark(square)
    tools("clang", 20)  # what it writes may be too new
    tools("clang-20", 20)
    with pytest.raises(BenchmarkInitError, match="apt-get install clang-19"):
        env.make_benchmark(square)
    tools("clang", 18)
    assert count_of(env, env.make_benchmark(square)) > 0
    with pytest.raises(BenchmarkInitError, match="no llvm-link of version 14 to 19.*apt-get install llvm-19"):
        env.make_benchmark([square, half])
    tools("clang-16", 16)
    with pytest.raises(BenchmarkInitError, match="^clang-16 ended with"):  # before the one without a number
        env.make_benchmark(write("wrong.c", "int f(void) { return y; }"))
