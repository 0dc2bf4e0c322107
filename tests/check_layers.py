#!/usr/bin/env python3
"""Checks that the tree keeps the shape of docs/ARCHITECTURE.md: who may include whom, where each
foreign header lives, what files may be called, and that CMake knows every source.

    check_layers.py [ROOT]       prints each violation as path:line: message; exit status 1 if any
    check_layers.py --self-test  plants every kind of violation in a small tree and expects to see it
"""

import argparse
import pathlib
import re
import sys
import tempfile

BASE, LOOPTREE, JOB, WIRE = "common/base", "common/looptree", "common/job", "common/wire"
COMMON = [BASE, LOOPTREE, JOB, WIRE]

# Folder -> the folders of ours that it may include from (always also itself).
MAY_INCLUDE = {
    "schema": [],
    BASE: [],
    LOOPTREE: [BASE],
    JOB: [BASE, LOOPTREE],
    WIRE: [BASE, LOOPTREE, JOB, "schema"],
    "monitoring": [BASE],
    "monitoring/host": [BASE],
    "storage": [BASE, LOOPTREE, JOB],
    "coordinator": [*COMMON, "storage", "monitoring"],
    "worker": [*COMMON, "monitoring", "monitoring/host"],
    "client": [*COMMON, "monitoring/host"],
}

# Exceptions with a reason: (file, folder that it may include from besides).
ALSO_MAY_INCLUDE = [
    (re.compile(r"client/(.*/)?(export|db)[^/]*$"), "storage"),  # these read a database file
]

# Foreign headers -> where they may be included. Each has one home, which translates its errors.
HOMES = [
    (re.compile(r"zmq(_addon)?\.hp?p?$"), re.compile(r"common/wire/")),
    (re.compile(r"(capnp|kj)/|\.capnp\.h$"), re.compile(r"common/wire/")),
    (re.compile(r"sqlite3\.h$"), re.compile(r"storage/")),
    (re.compile(r"llvm(-c)?/"), re.compile(r"worker/(cpu|gpu)/.*\.cc$")),
    (re.compile(r"cuda(_runtime)?\.h$|nvml\.h$|nvJitLink\.h$"), re.compile(r"worker/gpu/")),
    (re.compile(r"seccomp\.h$"), re.compile(r"worker/isolation\.cc$")),
    (re.compile(r"prometheus/"), re.compile(r"monitoring/")),
    (re.compile(r"civetweb\.h$|CivetServer\.h$"), re.compile(r"monitoring/")),
]

FORBIDDEN_WORDS = {"util", "utils", "helper", "helpers", "misc", "common"}
LONGEST_FILE = 800  # lines; aim below 400. Lower it when the longest file shrinks.

NOT_OURS = {"build", "__pycache__", "node_modules"}
CODE_FOLDERS = [*MAY_INCLUDE, "bench", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def files_of(root):
    """Every file of the project, as paths relative to its root with forward slashes, sorted."""
    found = []
    for path in root.rglob("*"):
        relative = path.relative_to(root)
        if any(part in NOT_OURS or part.startswith(".") for part in relative.parts):
            continue
        if path.is_file():
            found.append(relative.as_posix())
    return sorted(found)


def folder_of(path):
    """The folder of the table that `path` is in, or None for tests, bench, docs and the root."""
    matches = [folder for folder in MAY_INCLUDE if path.startswith(folder + "/")]
    return max(matches, key=len, default=None)


def check_include(path, included, quoted):
    """What is wrong with one #include of the file `path`, or None."""
    for header, home in HOMES:
        # Tests may look at a foreign library directly; its home tests do.
        if header.search(included) and not path.startswith(("tests/", "bench/")):
            if not home.match(path):
                return f"'{included}' may only be included in {home.pattern}"
            if not included.startswith("schema/"):
                return None
    target = folder_of(included)
    if quoted and target is None and not included.startswith(("tests/", "bench/")):
        return f"'{included}': includes of ours start at the root of the project"
    if target is None:
        return None
    if not quoted:
        return f"'{included}' is ours: include it with quotes"
    folder = folder_of(path)
    if folder is None or target == folder or target in MAY_INCLUDE[folder]:
        return None
    if any(file.match(path) and target == extra for file, extra in ALSO_MAY_INCLUDE):
        return None
    return f"{folder} may not include {target} ('{included}')"


def check_code(root, path):
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            problem = check_include(path, match.group(2), match.group(1) == '"')
            if problem:
                yield f"{path}:{number}: {problem}"
    if path.endswith(".h") and "#pragma once" not in lines:
        yield f"{path}:1: a header starts with #pragma once"
    if len(lines) > LONGEST_FILE:
        yield f"{path}:{LONGEST_FILE}: longer than {LONGEST_FILE} lines: split it by nouns"


def check_name(path):
    for part in pathlib.PurePosixPath(path).parts:
        if part == "common" and path.startswith("common/"):
            continue  # the folder with four libraries and no files of its own
        words = re.split(r"[_.\-]", part.lower())
        for word in FORBIDDEN_WORDS.intersection(words):
            yield f"{path}:1: nothing is called '{word}': name it by the noun it defines"
    if re.fullmatch(r"common/[^/]+", path) and path != "common/CMakeLists.txt":
        yield f"{path}:1: common/ has no files of its own"


def check_listed(root, paths):
    """Every .cc is named in the CMakeLists.txt of its folder or of one above."""
    lists = {
        path.removesuffix("CMakeLists.txt"): (root / path).read_text(encoding="utf-8")
        for path in paths
        if path.endswith("CMakeLists.txt")
    }
    for path in paths:
        if not path.endswith(".cc"):
            continue
        listed = any(
            path.startswith(folder)
            and re.search(r"(?<![\w/])" + re.escape(path.removeprefix(folder)) + r"(?!\w)", text)
            for folder, text in lists.items()
        )
        if not listed:
            yield f"{path}:1: no CMakeLists.txt names it, so it is never built"


def violations(root):
    paths = files_of(root)
    code = [path for path in paths if path.startswith(tuple(f + "/" for f in CODE_FOLDERS))]
    found = []
    for path in code:
        if path.endswith((".h", ".cc", ".py", ".sh")):
            found += check_code(root, path)
    for path in paths:
        found += check_name(path)
    found += check_listed(root, code)
    return found


# A tree without a violation; each planted case below adds one file to it.
CLEAN = {
    "CMakeLists.txt": "",
    "common/CMakeLists.txt": "",
    "common/base/CMakeLists.txt": "lf_library(lf_base SOURCES clock.cc)",
    "common/base/clock.h": "#pragma once\n#include <chrono>\n",
    "common/base/clock.cc": '#include "common/base/clock.h"\n',
    "common/wire/CMakeLists.txt": "lf_library(lf_wire SOURCES codec.cc)",
    "common/wire/codec.cc": '#include <zmq.hpp>\n#include "schema/wire.capnp.h"\n'
                            '#include "common/job/outcome.h"\n',
    "common/job/outcome.h": '#pragma once\n#include "common/looptree/key.h"\n',
    "common/looptree/key.h": "#pragma once\n",
    "storage/database.h": "#pragma once\n#include <sqlite3.h>\n",
    "client/CMakeLists.txt": "add_executable(loopfleet cli/export.cc)",
    "client/cli/export.cc": '#include "storage/database.h"\n',
    "worker/CMakeLists.txt": "lf_library(lf_worker SOURCES cpu/compile.cc)",
    "worker/cpu/compile.cc": "#include <llvm/IR/Module.h>\n",
    "tests/unit/base/CMakeLists.txt": "lf_gtest(base_test SOURCES clock_test.cc)",
    "tests/unit/base/clock_test.cc": '#include "common/base/clock.h"\n#include <sqlite3.h>\n',
}

# File -> its text, and what has to be said about it.
PLANTED = [
    ("common/base/log.h", '#pragma once\n#include "common/job/outcome.h"\n', "may not include"),
    ("common/looptree/x.h", '#pragma once\n#include "common/wire/codec.h"\n', "may not include"),
    ("common/job/x.h", '#pragma once\n#include "schema/wire.capnp.h"\n', "only be included in"),
    ("monitoring/x.h", '#pragma once\n#include "common/job/outcome.h"\n', "may not include"),
    ("storage/x.h", '#pragma once\n#include "common/wire/codec.h"\n', "may not include"),
    ("worker/x.h", '#pragma once\n#include "storage/database.h"\n', "may not include"),
    ("worker/y.h", '#pragma once\n# include "coordinator/core.h"\n', "may not include"),
    ("client/cli/batch.h", '#pragma once\n#include "storage/database.h"\n', "may not include"),
    ("coordinator/x.h", '#pragma once\n#include "worker/cpu/compile.h"\n', "may not include"),
    ("coordinator/x.h", '#pragma once\n#include "core.h"\n', "start at the root"),
    ("coordinator/x.h", "#pragma once\n#include <common/base/clock.h>\n", "with quotes"),
    ("coordinator/x.h", "#pragma once\n#include <zmq.hpp>\n", "only be included in"),
    ("coordinator/x.h", "#pragma once\n#include <zmq.h>\n", "only be included in"),
    ("coordinator/x.h", "#pragma once\n#include <sqlite3.h>\n", "only be included in"),
    ("coordinator/x.h", "#pragma once\n#include <prometheus/counter.h>\n", "only be included in"),
    ("coordinator/x.h", "#pragma once\n#include <capnp/message.h>\n", "only be included in"),
    ("worker/cpu/x.h", "#pragma once\n#include <llvm/IR/Module.h>\n", "only be included in"),
    ("worker/x.h", "#pragma once\n#include <llvm/IR/Module.h>\n", "only be included in"),
    ("worker/cpu/y.h", "#pragma once\n#include <cuda.h>\n", "only be included in"),
    ("worker/string_utils.h", "#pragma once\n", "nothing is called 'utils'"),
    ("worker/misc/kernel.h", "#pragma once\n", "nothing is called 'misc'"),
    ("client/common.h", "#pragma once\n", "nothing is called 'common'"),
    ("docs/helper-notes.md", "", "nothing is called 'helper'"),
    ("common/clock.h", "#pragma once\n", "no files of its own"),
    ("worker/unguarded.h", "\n", "#pragma once"),
    ("worker/orphan.cc", "", "never built"),
    ("tests/unit/base/other_test.cc", "", "never built"),
    ("tests/unit/base/test.cc", "", "never built"),  # a part of a listed name is not that name
    ("worker/long.h", "#pragma once\n" + "\n" * LONGEST_FILE, "longer than"),
]


def write_tree(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        write_tree(pathlib.Path(folder), CLEAN)
        found = violations(pathlib.Path(folder))
        if found:
            return ["the clean tree is said to violate:", *found]
    problems = []
    for path, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(pathlib.Path(folder), {**CLEAN, path: text})
            found = violations(pathlib.Path(folder))
            if len(found) != 1 or path not in found[0] or expected not in found[0]:
                problems.append(f"planted in {path}: expected one '{expected}', got {found}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if not arguments.self_test and not (arguments.root / "common" / "base").is_dir():
        print(f"{arguments.root} is not loopfleet's source tree", file=sys.stderr)
        return 2
    found = self_test() if arguments.self_test else violations(arguments.root)
    print("\n".join(found) if found else "no violations", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
