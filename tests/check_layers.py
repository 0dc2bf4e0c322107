#!/usr/bin/env python3
"""Checks that the tree keeps the shape of docs/ARCHITECTURE.md: which room includes from which, that
no modules include each other in a circle, where each foreign header lives, what files are called, how
many a folder holds, and that CMake knows every source. A module is the .h and .cc of one name, and the
_impl.h that its neighbours share.

    check_layers.py [ROOT]       prints each violation as path:line: message; exit status 1 if any
    check_layers.py --self-test  plants every kind of violation in a small tree and expects to see it
"""

import argparse
import collections
import pathlib
import re
import sys
import tempfile

# Program -> the folders and modules outside of it that it may include from.
COMMON = "common/base common/looptree common/llvm_passes common/job common/wire common/fleet"
# The store without its engines.
STORE = ("storage/record storage/settled_failure storage/brief_outcome storage/thinning storage/pruning "
         "storage/unfinished_jobs storage/store_reader storage/store storage/open storage/outcome_feed "
         "storage/database_check storage/outcome_repair storage/snapshot")
PROGRAMS = {
    "schema": "",
    "common/base": "",
    "common/looptree": "common/base",
    "common/llvm_passes": "common/base",
    "common/job": "common/base common/looptree common/llvm_passes",
    "common/wire": "common/base common/looptree common/job schema",
    "common/fleet": "common/base common/job common/wire/message",
    "tensor": "common/base common/looptree",
    "kernel": "common/base common/looptree common/job tensor",
    "monitoring": "common/base",
    "monitoring/host": "common/base",
    "storage": "common/base common/looptree common/job",
    "coordinator": f"{COMMON} {STORE} monitoring",
    "worker": f"{COMMON} kernel monitoring monitoring/host",
    "client": f"{COMMON} monitoring/host",
}
# Program -> its rooms from the ground up -> the rooms and modules of it that each may include from
# (always also itself). "." is the program's own folder, "*" all that is above in this list. A module
# in the list is a room by itself.
ROOMS = {
    "common/looptree": {
        "program": "",
        "tree": "program",
        "interpreter": "program tree",
        "text": "program tree",
        "datasets": "program tree text",
        "actions": "program tree datasets",
        "features": "program tree text actions",
    },
    "common/wire": {
        "bounds": "",
        "hardware_label": "",
        "message": "bounds",
        "keys": "",
        "codec": "bounds hardware_label message",
        "transport": "bounds keys",
    },
    "storage": {
        "record": "",
        "settled_failure": "record",
        "brief_outcome": "",
        "thinning": "",
        "pruning": "",
        "unfinished_jobs": "record",
        "batch_list": "record",
        "database_check": "",
        "outcome_repair": "record",
        "snapshot": "",
        "store_reader": "record brief_outcome thinning pruning",
        "store": "record thinning pruning unfinished_jobs store_reader",
        # An engine: it knows the interfaces, and nothing but `open` knows it.
        "sqlite": "",
        "sqlite/tables/conditions_table": "record sqlite",
        "sqlite/result_index": "record sqlite sqlite/tables/conditions_table",
        "sqlite/tables": "record thinning batch_list sqlite sqlite/tables/conditions_table sqlite/result_index",
        "sqlite/maintenance": "record thinning pruning database_check outcome_repair snapshot sqlite "
                              "sqlite/tables/conditions_table sqlite/result_index sqlite/tables",
        "sqlite/newest_outcomes": "record brief_outcome sqlite",
        "sqlite/unfinished_rows": "record unfinished_jobs sqlite sqlite/tables",
        "sqlite/sqlite_reader": "*",
        "sqlite/sqlite_store": "*",
        "open": "*",
        "outcome_feed": "store_reader",
        # A copy of the outcomes elsewhere.
        "postgres/postgres_address": "",
        "postgres": "record outcome_feed postgres/postgres_address",
    },
    "coordinator": {
        "core/contract": "",
        "core/rules": "",
        "core/tables": "core/contract core/rules",
        "core/state": "core/contract core/rules core/tables",
        "core/dispatch": "core/contract core/rules core/tables core/state",
        "core/handlers": "core/contract core/rules core/tables core/state core/dispatch",
        "core": "*",
        "shell": "*",
        "page": "shell",
        "mirror": "",
        ".": "*",
    },
    "worker": {
        "worker_config": "",
        "backend": "",
        "lowering": "backend",
        "isa": "lowering",
        "host": "isa",
        "sandbox": "",
        "timing": "isa sandbox",
        "verification": "backend",
        "processes": "backend isa host sandbox timing verification",
        "coordinator_link": "worker_config sandbox timing",
        "evaluation": "backend sandbox timing verification processes coordinator_link",
        "cpu": "backend isa host lowering",
        "portable_c": "backend lowering",
        "gpu/codegen": "backend sandbox lowering cpu",
        "machine": "worker_config sandbox timing processes coordinator_link",
        "gpu/device": "worker_config backend host sandbox timing verification processes coordinator_link "
                      "machine evaluation gpu/codegen",
        "child_programs": "worker_config backend sandbox timing verification processes coordinator_link evaluation",
        "serve": "worker_config backend sandbox verification processes child_programs",
        "emit": "backend isa sandbox cpu portable_c gpu/codegen",
        "llvm_env": "sandbox coordinator_link evaluation",
        ".": "*",
    },
    "client": {
        ".": "",
        "replay": ".",
        "search": ".",
        "cli/exit_code": "",
        "cli/text": ". replay search cli/exit_code",
        "cli": ". search cli/exit_code",
        "cli/commands": ". replay search cli/exit_code cli/text cli",
        "cli/main": "cli",
        "python": ". replay search",
    },
}

# Rooms that may include less from outside than their program.
NARROWER = {
    # A pure state machine: no socket, thread, file or metric.
    "coordinator/core": "common/base common/looptree common/job common/wire/bounds common/wire/message "
                        "common/wire/hardware_label common/wire/keys/role common/fleet/fleet_model "
                        "storage/record",
}
# Modules that may include more.
ALSO_MAY_INCLUDE = [
    (re.compile(r"coordinator/mirror/"), "storage/postgres"),
    (re.compile(r"coordinator/coordinator_options$"), "storage/postgres/postgres_address"),
    (re.compile(r"coordinator/page/job_view$"), "worker/portable_c"),
    (re.compile(r"coordinator/shell/postgres/shared_lookups$"), "storage/postgres/shared_results"),
    (re.compile(r"client/python/(array_exchange|compiled_tensor|expressions|local_timer|view_equations|(ir|tensor|tree|kernel)_binding)$"), "tensor kernel worker/lowering worker/portable_c"),
    (re.compile(r"client/search/store_evaluator$"), STORE),
    (re.compile(r"client/cli/commands/(db_command|export_command|forget_failures_command|prune_command|offline_database)$"), STORE),
    (re.compile(r"client/python/database_binding$"), STORE),
]

# Includes to cut: module -> module, and how. They are left out of what follows from the tables above
# and of the look for circles. An entry that is no longer needed is a violation.
TO_CUT = {
}

# Foreign headers -> where they may be included. Each has one home, which translates its errors.
HOMES = [
    (re.compile(r"zmq(_addon)?\.hp?p?$"), re.compile(r"common/wire/(transport|keys)/")),
    (re.compile(r"(capnp|kj)/|\.capnp\.h$"), re.compile(r"common/wire/codec/")),
    (re.compile(r"sqlite3\.h$"), re.compile(r"storage/sqlite/")),
    (re.compile(r"pqxx/"), re.compile(r"storage/postgres/")),
    (re.compile(r"llvm(-c)?/"), re.compile(r"worker/(cpu|gpu/codegen|llvm_env)/.*\.cc$")),
    (re.compile(r"cuda(_runtime)?\.h$|nvml\.h$|nvJitLink\.h$"), re.compile(r"worker/gpu/")),
    (re.compile(r"seccomp\.h$"), re.compile(r"worker/sandbox/syscall_filter\.cc$")),
    (re.compile(r"prometheus/"), re.compile(r"monitoring/")),
    (re.compile(r"civetweb\.h$|CivetServer\.h$"), re.compile(r"monitoring/")),
]

FORBIDDEN_WORDS = {"util", "utils", "helper", "helpers", "misc", "common"}
LONGEST_FILE = 800  # lines; aim below 400. Lower it when the longest file shrinks.
FULLEST_FOLDER = 44  # sources

NOT_OURS = {"build", "__pycache__", "node_modules"}
CODE_FOLDERS = [*PROGRAMS, "bench", "tests"]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :[^:].*)? ?\{")


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


def module_of(path):
    return re.sub(r"(_impl)?\.(h|cc|cc\.in)$", "", path)


def program_of(path):
    """The program of the table that `path` is in, or None for tests, bench, docs and the root."""
    fitting = [program for program in PROGRAMS if path.startswith(program + "/")]
    return max(fitting, key=len, default=None)


def within(path, places):
    """Whether the program, folder or module of `path` is one of `places`, names with spaces between."""
    module, program = module_of(path), program_of(path)
    return any(place in (module, program) or place not in PROGRAMS and path.startswith(place + "/")
               for place in places.split())


def room_of(path, program):
    """The room of `program` that `path` is in: the longest name of its table that fits."""
    inside = module_of(path).removeprefix(program + "/")
    fitting = [room for room in ROOMS[program] if room == inside or inside.startswith(room + "/")]
    if fitting:
        return max(fitting, key=len)
    return "." if "/" not in inside and "." in ROOMS[program] else None


def check_rooms(path, included, program):
    """What is wrong with an include within one program, or None."""
    if program not in ROOMS:
        return None
    room, target = room_of(path, program), room_of(included, program)
    if room is None or target is None:  # check_folders says so
        return None
    below = list(ROOMS[program])[:list(ROOMS[program]).index(room)]
    allowed = ROOMS[program][room]
    if room == target or target in (below if allowed == "*" else allowed.split()):
        return None
    return f"{program}/{room} may not include from {program}/{target} ('{included}')".replace("/.", "")


def check_include(path, included, quoted):
    """What is wrong with one #include of the file `path`, or None."""
    for header, home in HOMES:
        # Tests may look at a foreign library directly; its home tests do.
        if header.search(included) and not path.startswith(("tests/", "bench/")):
            if not home.match(path):
                return f"'{included}' may only be included in {home.pattern}"
            if not included.startswith("schema/"):
                return None
    target = program_of(included)
    if quoted and target is None and not included.startswith(("tests/", "bench/")):
        return f"'{included}': includes of ours start at the root of the project"
    if target is None:
        return None
    if not quoted:
        return f"'{included}' is ours: include it with quotes"
    program = program_of(path)
    if program is None or (module_of(path), module_of(included)) in TO_CUT:
        return None
    if program == target:
        return check_rooms(path, included, program)
    places = next((narrow for room, narrow in NARROWER.items() if within(path, room)), PROGRAMS[program])
    if within(included, places):
        return None
    if any(module.match(module_of(path)) and within(included, extra) for module, extra in ALSO_MAY_INCLUDE):
        return None
    return f"{program} may not include {target} ('{included}')"


def check_table():
    """The table itself has no circle: a room names only rooms above it in the list."""
    for program, rooms in ROOMS.items():
        for position, (room, allowed) in enumerate(rooms.items()):
            for other in [] if allowed == "*" else allowed.split():
                if other not in list(rooms)[:position]:
                    yield f"the table: {program}/{room} may not stand below {other}"


def includes_of(root, paths):
    """{module: {module that it includes: "path:line"}}, among the files `paths`."""
    modules = {module_of(path) for path in paths}
    found = {module: {} for module in modules}
    for path in paths:
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            target = module_of(match.group(2)) if match and match.group(1) == '"' else None
            if target in modules and target != module_of(path):
                found[module_of(path)].setdefault(target, f"{path}:{number}")
    return found


def check_circles(includes):
    """Modules that include each other, over any number of steps: each set of them once."""
    order, lowest, stack, done = {}, {}, [], set()

    def visit(module):  # Tarjan's strongly connected components
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for target in sorted(includes[module]):
            if (module, target) in TO_CUT:
                continue
            if target not in order:
                yield from visit(target)
            if target not in done:
                lowest[module] = min(lowest[module], lowest[target])
        if lowest[module] == order[module]:
            circle = stack[stack.index(module):]
            del stack[stack.index(module):]
            done.update(circle)
            if len(circle) > 1:
                circle.sort()
                where = next(includes[circle[0]][t] for t in circle if t in includes[circle[0]])
                yield f"{where}: include each other in a circle: {', '.join(circle)}"

    for module in sorted(includes):
        if module not in order:
            yield from visit(module)


def check_cuts(includes, cuts):
    """Entries of TO_CUT that have been cut."""
    for module, target in cuts:
        if target not in includes.get(module, {}):
            yield f"{module}: no longer includes {target}: take it out of TO_CUT"


def check_folders(paths):
    """That each source is in a room, that no folder holds too many, and that the name of a module is
    found once in its program."""
    folders, names = collections.Counter(), collections.defaultdict(set)
    for path in paths:
        if path.endswith((".h", ".cc")) and program_of(path) in ROOMS and not room_of(path, program_of(path)):
            yield f"{path}:1: in no room of the table"
        if path.endswith((".h", ".cc", ".cc.in", ".py")):
            folders[path.rpartition("/")[0]] += 1
        if path.endswith((".h", ".cc")) and program_of(path):
            names[program_of(path), module_of(path).rpartition("/")[2]].add(module_of(path))
    for folder, count in folders.items():
        if count > FULLEST_FOLDER:
            yield f"{folder}:1: {count} sources in one folder: give them rooms"
    for (_, name), modules in names.items():
        if len(modules) > 1:
            yield f"{min(modules)}:1: '{name}' is not found by its name: {', '.join(sorted(modules))}"


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


def check_types(root, paths):
    """That no two files define a type of the same name in the same namespace. The linker takes
    the functions that the compiler made for one of them for both."""
    places = collections.defaultdict(list)
    for path in paths:
        inside = []
        for number, line in enumerate((root / path).read_text(encoding="utf-8").splitlines(), 1):
            if match := NAMESPACE.match(line):
                inside.append(match.group(1))
            elif line.startswith("}  // namespace") and inside:
                inside.pop()
            elif (match := TYPE.match(line)) and "" not in inside:  # "": without a name, one for each file
                places["::".join(inside + [match.group(1)])].append(f"{path}:{number}")
    for name, where in places.items():
        if len(where) > 1:
            yield f"{where[0]}: {name} is defined in {where[1].partition(':')[0]}, too"


def check_name(path):
    for part in pathlib.PurePosixPath(path).parts:
        if part == "common" and path.startswith("common/"):
            continue  # the folder with four libraries and no files of its own
        if part == "util" and path.startswith("client/python/loopfleet/compiler_gym/"):
            continue  # CompilerGym's name, which programs import
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


def violations(root, planted=False):
    paths = files_of(root)
    code = [path for path in paths if path.startswith(tuple(f + "/" for f in CODE_FOLDERS))]
    found = []
    for path in code:
        if path.endswith((".h", ".cc", ".py", ".sh")):
            found += check_code(root, path)
    for path in paths:
        found += check_name(path)
    found += check_listed(root, code)
    found += check_table()
    found += check_folders(code)
    sources = [path for path in code if path.endswith((".h", ".cc", ".cc.in"))]
    found += check_types(root, sources)
    includes = includes_of(root, sources)
    found += check_circles(includes)
    if not planted:
        found += check_cuts(includes, TO_CUT)
    return found


# A tree without a violation; each planted case below adds files to it.
CLEAN = {
    "CMakeLists.txt": "",
    "common/CMakeLists.txt": "",
    "common/base/CMakeLists.txt": "lf_library(lf_base SOURCES clock.cc)",
    "common/base/clock.h": "#pragma once\n#include <chrono>\n",
    "common/base/clock.cc": '#include "common/base/clock.h"\n',
    "common/wire/CMakeLists.txt": "lf_library(lf_wire SOURCES codec/codec.cc transport/router.cc)",
    "common/wire/message.h": '#pragma once\n#include "common/job/outcome.h"\n',
    "common/wire/codec/codec.cc": '#include "schema/wire.capnp.h"\n#include "common/wire/message.h"\n',
    "common/wire/transport/router.h": "#pragma once\n",
    "common/wire/transport/router.cc": "#include <zmq.hpp>\n",
    "common/job/outcome.h": '#pragma once\n#include "common/looptree/tree/key.h"\n',
    "common/looptree/tree/key.h": "#pragma once\n",
    "coordinator/core/contract/event.h": '#pragma once\n#include "common/wire/message.h"\n',
    "coordinator/core/tables/job_table.h": '#pragma once\n#include "coordinator/core/contract/event.h"\n',
    "coordinator/core/dispatch/retry.h": '#pragma once\n#include "coordinator/core/tables/job_table.h"\n',
    "coordinator/shell/event_loop.h": '#pragma once\n#include "coordinator/core/dispatch/retry.h"\n'
                                      '#include "common/wire/transport/router.h"\n',
    "monitoring/host/core_plan.h": "#pragma once\n",
    "storage/store.h": "#pragma once\n",
    "storage/sqlite/sqlite_store.h": '#pragma once\n#include "storage/sqlite/sqlite.h"\n#include "storage/store.h"\n',
    "storage/sqlite/sqlite.h": "#pragma once\n#include <sqlite3.h>\n",
    "client/CMakeLists.txt": "add_executable(loopfleet cli/commands/export_command.cc)",
    "client/cli/commands/export_command.cc": '#include "storage/store.h"\n',
    "worker/CMakeLists.txt": "lf_library(lf_worker SOURCES cpu/compile.cc)",
    "worker/cpu/compile.cc": "#include <llvm/IR/Module.h>\n",
    "tests/unit/base/CMakeLists.txt": "lf_gtest(base_test SOURCES clock_test.cc)",
    "tests/unit/base/clock_test.cc": '#include "common/base/clock.h"\n#include <sqlite3.h>\n',
}

ONCE = "#pragma once\n"

# File -> its text, and what has to be said about it.
PLANTED = [
    # between programs
    ("common/base/log.h", ONCE + '#include "common/job/outcome.h"\n', "may not include"),
    ("common/looptree/text/x.h", ONCE + '#include "common/wire/message.h"\n', "may not include"),
    ("common/job/x.h", ONCE + '#include "schema/wire.capnp.h"\n', "only be included in"),
    ("monitoring/x.h", ONCE + '#include "common/job/outcome.h"\n', "may not include"),
    ("worker/x.h", ONCE + '#include "storage/store.h"\n', "may not include"),
    ("worker/y.h", ONCE + '# include "coordinator/core/core.h"\n', "may not include"),
    ("client/cli/commands/batch.h", ONCE + '#include "storage/store.h"\n', "may not include"),
    ("coordinator/x.h", ONCE + '#include "worker/cpu/compile.h"\n', "may not include"),
    ("coordinator/x.h", ONCE + '#include "storage/sqlite/sqlite_store.h"\n', "may not include"),
    ("client/cli/commands/export_command.h", ONCE + '#include "storage/sqlite/sqlite_store.h"\n', "may not include"),
    ("storage/record.h", ONCE + '#include "storage/sqlite/sqlite_store.h"\n', "may not include from storage/sqlite"),
    ("coordinator/x.h", ONCE + '#include "monitoring/host/core_plan.h"\n', "may not include"),
    # between rooms
    ("coordinator/core/tables/x.h", ONCE + '#include "coordinator/core/dispatch/retry.h"\n',
     "core/tables may not include from coordinator/core/dispatch"),
    ("coordinator/core/tables/x.h", ONCE + '#include "common/wire/transport/router.h"\n', "may not include"),
    ("coordinator/core/core.h", ONCE + '#include "storage/store.h"\n', "may not include"),
    ("coordinator/shell/x.h", ONCE + '#include "coordinator/main.h"\n',
     "coordinator/shell may not include from coordinator ("),
    ("common/wire/message_text.h", ONCE, "in no room"),
    ("common/wire/bounds.h", ONCE + '#include "common/wire/message.h"\n', "may not include"),
    ("worker/attic/x.h", ONCE + '#include "worker/cpu/target.h"\n', "in no room"),
    ("client/replay/x.h", ONCE + '#include "client/cli/text/table.h"\n', "may not include"),
    # how a header is named, and where foreign ones live
    ("coordinator/x.h", ONCE + '#include "core.h"\n', "start at the root"),
    ("coordinator/x.h", ONCE + "#include <common/base/clock.h>\n", "with quotes"),
    ("coordinator/x.h", ONCE + "#include <zmq.hpp>\n", "only be included in"),
    ("coordinator/x.h", ONCE + "#include <zmq.h>\n", "only be included in"),
    ("common/wire/codec/x.h", ONCE + "#include <zmq.h>\n", "only be included in"),
    ("coordinator/x.h", ONCE + "#include <sqlite3.h>\n", "only be included in"),
    ("coordinator/x.h", ONCE + "#include <prometheus/counter.h>\n", "only be included in"),
    ("coordinator/x.h", ONCE + "#include <capnp/message.h>\n", "only be included in"),
    ("worker/cpu/x.h", ONCE + "#include <llvm/IR/Module.h>\n", "only be included in"),
    ("worker/x.h", ONCE + "#include <llvm/IR/Module.h>\n", "only be included in"),
    ("worker/cpu/y.h", ONCE + "#include <cuda.h>\n", "only be included in"),
    # names and sizes
    ("worker/string_utils.h", ONCE, "nothing is called 'utils'"),
    ("bench/misc/kernel.h", ONCE, "nothing is called 'misc'"),
    ("client/common.h", ONCE, "nothing is called 'common'"),
    ("docs/helper-notes.md", "", "nothing is called 'helper'"),
    ("common/clock.h", ONCE, "no files of its own"),
    ("coordinator/core/state/retry.h", ONCE, "not found by its name"),
    ("worker/unguarded.h", "\n", "#pragma once"),
    ("worker/orphan.cc", "", "never built"),
    ("tests/unit/base/other_test.cc", "", "never built"),
    ("tests/unit/base/test.cc", "", "never built"),  # a part of a listed name is not that name
    ("worker/long.h", ONCE + "\n" * LONGEST_FILE, "longer than"),
]

# Several files, and what has to be said about them, once.
PLANTED_SETS = [
    ({f"coordinator/core/tables/t{i}.h": ONCE for i in range(FULLEST_FOLDER)}, "sources in one folder"),
    ({"coordinator/core/tables/a.h": ONCE + '#include "coordinator/core/tables/b.h"\n',
      "coordinator/core/tables/b.h": ONCE + '#include "coordinator/core/tables/c.h"\n',
      "coordinator/core/tables/c.h": ONCE + '#include "coordinator/core/tables/a.h"\n'},
     "in a circle: coordinator/core/tables/a, coordinator/core/tables/b, coordinator/core/tables/c"),
    ({"coordinator/core/tables/a.h": ONCE + "namespace loopfleet {\nstruct Lease {\n};\n}  // namespace loopfleet\n",
      "coordinator/core/tables/b.h": ONCE + "namespace loopfleet {\nenum class Lease : int {\n};\n"},
     "Lease is defined in coordinator/core/tables/b.h, too"),
    ({"tests/unit/base/a.h": ONCE + '#include "tests/unit/base/b.h"\n',
      "tests/unit/base/b.h": ONCE + '#include "tests/unit/base/a.h"\n'}, "in a circle"),
]


def write_tree(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        write_tree(pathlib.Path(folder), CLEAN)
        found = violations(pathlib.Path(folder), planted=True)
        if found:
            return ["the clean tree is said to violate:", *found]
    problems = []
    cases = [({path: text}, path, expected) for path, text, expected in PLANTED]
    cases += [(files, "", expected) for files, expected in PLANTED_SETS]
    for files, path, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(pathlib.Path(folder), {**CLEAN, **files})
            found = violations(pathlib.Path(folder), planted=True)
            if len(found) != 1 or path.rpartition(".")[0] not in found[0] or expected not in found[0]:
                problems.append(f"planted in {min(files)}: expected one '{expected}', got {found}")
    if "no longer includes" not in "".join(check_cuts({}, {("a", "b"): ""})):
        problems.append("an include that was cut is still in the list, and nothing is said")
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
