"""LLVM bitcode for tests."""

import subprocess


def bitcode_of(text):
    """The bitcode of a C program or function: not optimised, but not marked to be left so."""
    command = ["clang-19", "-O1", "-Xclang", "-disable-llvm-passes", "-emit-llvm", "-c", "-x", "c", "-", "-o", "-"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout
