#!/usr/bin/env python3
"""Builds the programs of debian-v0.toml into FOLDER/<name>.bc, for workers to find.

    build_debian.py FOLDER [--only NAME...]
    build_debian.py --check      only reads the table, and says what is wrong with it

Source packages come from Debian's archive through lists and a cache of its own, so no file of the
system changes. A program that is there already, with the right hash, is left alone. No package's own
makefile is run. Exit status 1 if a program could not be built or differs from its hash in the table.

    build_debian.py FOLDER --print-hashes    for a new row: prints hashes instead of comparing them
"""

import argparse
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

TABLE = pathlib.Path(__file__).with_name("debian-v0.toml")
ARCHIVE = "deb-src http://deb.debian.org/debian bookworm main\n"
# As common/llvm_passes/clang_flags.h: this script runs without loopfleet.
CLANG = ["clang-19", "-O1", "-Xclang", "-disable-llvm-passes", "-w", "-g0", "-fno-ident", "-emit-llvm", "-c"]


class BuildError(Exception):
    pass


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def run(command, folder):
    # Dates and languages of this machine must not reach the program.
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "SOURCE_DATE_EPOCH": "0", "CC": "clang-19"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error}") from error
    if done.returncode != 0:
        raise BuildError(f"{command[0]} exited with {done.returncode}: {done.stderr.strip()[-1000:]}")


class Downloads:
    """Debian's source packages, in a folder with lists of its own that are fetched once."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("state/lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        (folder / "sources.list").write_text(ARCHIVE)
        self.options = ["-q", "-o", f"Dir::Etc::sourcelist={folder}/sources.list", "-o", "Dir::Etc::sourceparts=-",
                        "-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache",
                        "-o", "APT::Sandbox::User=root"]
        self.has_lists = False

    def fetch(self, program):
        if not self.has_lists:
            run(["apt-get", *self.options, "update"], self.folder)
            self.has_lists = True
        run(["apt-get", *self.options, "source", "--download-only", "--tar-only", program["package"]], self.folder)
        archive = self.folder / program["archive"]
        if sha256_of(archive) != program["sha256"]:
            raise BuildError(f"{archive.name} has another SHA-256 than the table")
        return archive


def matching(folder, patterns, excluded):
    """The files that match, in the order of the patterns and then of their names."""
    found = []
    for pattern in patterns:
        names = sorted(name for name in glob.glob(pattern, root_dir=folder) if name not in found)
        if not names:
            raise BuildError(f"the archive has no source {pattern}")
        found += [name for name in names if not any(pathlib.PurePath(name).match(each) for each in excluded)]
    return found


def build(program, downloads, target, print_hashes):
    """Leaves the bitcode at `target`, if it is the one of the table."""
    archive = downloads.fetch(program)
    with tempfile.TemporaryDirectory() as scratch:
        run(["tar", "-xf", archive, "--strip-components=1"], scratch)
        if "configure" in program:
            run(["./configure", *program["configure"]], scratch)
        for name, text in program.get("files", {}).items():
            pathlib.Path(scratch, name).write_text(text)
        objects = []
        for number, source in enumerate(matching(scratch, program["sources"], program.get("exclude", []))):
            # Relative names: a module records the name of its source.
            objects.append(f"{number}.bc")
            run([*CLANG, *program["flags"], source, "-o", objects[-1]], scratch)
        run(["llvm-link-19", *objects, "-o", "linked.bc"], scratch)
        linked = pathlib.Path(scratch, "linked.bc")
        digest = sha256_of(linked)
        if print_hashes:
            print(f"{program['name']}: {digest}, {len(objects)} files, {linked.stat().st_size} bytes")
        elif digest != program["bitcode"]:
            raise BuildError(f"its bitcode has the SHA-256 {digest}, not the one of the table")
        shutil.copyfile(linked, target.with_suffix(".new"))
        target.with_suffix(".new").replace(target)


def mistakes(programs):
    """What is wrong with the table, line by line."""
    required = {"name", "package", "archive", "sha256", "flags", "sources", "bitcode"}
    optional = {"configure", "files", "exclude"}
    names = [program.get("name") for program in programs]
    for program in programs:
        name = program.get("name")
        if wrong := (required - set(program)) | (set(program) - required - optional):
            yield f"{name}: missing or unknown: {', '.join(sorted(wrong))}"
            continue
        if names.count(name) > 1:
            yield f"{name}: twice in the table"
        if not re.fullmatch("[a-z0-9-]+", name):
            yield f"{name}: not a name that a program URI takes"
        for field in ("sha256", "bitcode"):
            if not re.fullmatch("[0-9a-f]{64}", program[field]):
                yield f"{name}: {field} is no SHA-256"
        if not program["sources"] or len(set(program["sources"])) != len(program["sources"]):
            yield f"{name}: no sources, or one of them twice"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--check", action="store_true", help="only check the table")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--print-hashes", action="store_true", help="print the hashes, and accept any")
    arguments = parser.parse_args()
    programs = tomllib.loads(TABLE.read_text(encoding="utf-8"))["program"]
    if arguments.check:
        found = list(mistakes(programs))
        print("\n".join(found) or f"{len(programs)} programs")
        return 1 if found else 0
    if arguments.folder is None:
        parser.error("FOLDER is missing")
    unknown = set(arguments.only or []) - {program["name"] for program in programs}
    if unknown:
        parser.error(f"not in the table: {', '.join(sorted(unknown))}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        downloads = Downloads(pathlib.Path(folder))
        for program in programs:
            name = program["name"]
            if arguments.only and name not in arguments.only:
                continue
            target = arguments.folder / f"{name}.bc"
            if target.exists() and sha256_of(target) == program["bitcode"]:
                continue
            try:
                build(program, downloads, target, arguments.print_hashes)
            except BuildError as error:
                print(f"build_debian: {name}: {error}", file=sys.stderr)
                failed = True
                continue
            print(target, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
