#!/usr/bin/env python3
"""Makes the images of the two daemons without a container daemon, from the Debian packages:

    deploy/container/build_images.py --debs FOLDER --out FOLDER

writes OUT/loopfleet-coordinator_VERSION_amd64.oci.tar and the worker's (OCI archives). The files are Debian's
essential packages, what the package depends on, and the package; user, ports, entry point and settings are those
of the Dockerfile beside this script, which is read, so they are the same whichever way an image is built. To load one:

    skopeo copy oci-archive:FILE docker-daemon:loopfleet-worker:VERSION      # or: podman load -i FILE

Needs root rights, mmdebstrap, umoci, skopeo and Debian's archive.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DAEMONS = ("coordinator", "worker")
APART = "LOOPFLEET_APART"  # set once this script has its own mount namespace
SUITE = "bookworm"
ARCHIVES = ("deb http://deb.debian.org/debian bookworm main",
            "deb http://deb.debian.org/debian bookworm-updates main",
            "deb http://deb.debian.org/debian-security bookworm-security main")
# As in Debian's own slim images: no documents but the licences.
LEFT_OUT = ("path-exclude=/usr/share/man/*", "path-exclude=/usr/share/locale/*", "path-exclude=/usr/share/info/*",
            "path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright")
# `keygen` ran while the coordinator's package was installed: keys in an image would be everybody's.
REMOVE_KEYS = 'rm -f "$1"/etc/loopfleet/coordinator/coordinator.key "$1"/etc/loopfleet/coordinator/coordinator.key_secret'


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def stages():
    """The Dockerfile's instructions by stage, each a list of (name, text); a stage begins with those of its base."""
    found = {"": []}
    lines = re.sub(r"\\\n\s*", "", (HERE / "Dockerfile").read_text()).splitlines()
    here = found[""]
    for line in lines:
        name, _, text = line.partition(" ")
        if name == "FROM":
            base, _, label = text.partition(" AS ")
            here = found[label] = list(found.get(base, []))
        elif name and not name.startswith("#"):
            here.append((name, text.strip()))
    return found


def last(instructions, name):
    return [text for instruction, text in instructions if instruction == name][-1]


def config_options(instructions):
    """umoci's options for what the Dockerfile says of a stage. Health checks are no part of OCI's configuration."""
    options = ["--os=linux", "--architecture=amd64", "--config.user", last(instructions, "USER"),
               "--config.workingdir", last(instructions, "WORKDIR"),
               "--config.env", "PATH=/usr/local/bin:/usr/bin:/bin"]
    for word in json.loads(last(instructions, "ENTRYPOINT")):
        options += ["--config.entrypoint", word]
    for setting in last(instructions, "ENV").split():
        options += ["--config.env", setting]
    for port in last(instructions, "EXPOSE").split():
        options += ["--config.exposedports", port]
    for name, volume in instructions:
        if name == "VOLUME":
            options += ["--config.volume", volume]
    return options


def make_root(package, user, scratch):
    """The image's files, as a tar archive."""
    layer = scratch / f"{package}.tar"
    home = f'mkdir -m 700 -p "$1/var/lib/loopfleet"; chown {user} "$1/var/lib/loopfleet"'
    run("mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={package}",
        "--aptopt=APT::Install-Recommends false", "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt={option}" for option in LEFT_OUT),
        f"--customize-hook={REMOVE_KEYS}", f"--customize-hook={home}",
        f"--customize-hook=copy-in {scratch}/loopfleet-healthy /usr/local/bin",
        SUITE, layer, *ARCHIVES, f"deb [trusted=yes] copy:{scratch}/debs ./",
        env={**os.environ, "TMPDIR": str(scratch)})
    return layer


def make_image(daemon, version, out, scratch):
    package = f"loopfleet-{daemon}"
    instructions = stages()[daemon]
    layer = make_root(package, last(instructions, "USER"), scratch)
    layout = scratch / f"{package}-layout"
    image = f"{layout}:{version}"
    run("umoci", "init", "--layout", layout)
    run("umoci", "new", "--image", image)
    run("umoci", "raw", "add-layer", "--image", image, layer)
    run("umoci", "config", "--image", image, "--author", "the loopfleet authors",
        "--config.label", f"org.opencontainers.image.version={version}", *config_options(instructions))
    archive = out / f"{package}_{version}_amd64.oci.tar"
    archive.unlink(missing_ok=True)
    run("skopeo", "copy", "--quiet", f"oci:{image}", f"oci-archive:{archive}:{package}:{version}")


def make_images(from_debs, out, scratch):
    scratch.chmod(0o755)  # apt reads the packages as a user of its own
    debs = scratch / "debs"
    debs.mkdir()
    for deb in from_debs.glob("*.deb"):
        shutil.copy(deb, debs)
    with open(debs / "Packages", "w", encoding="utf-8") as index:
        run("dpkg-scanpackages", "--multiversion", ".", cwd=debs, stdout=index, stderr=subprocess.DEVNULL)
    shutil.copy(HERE / "healthy.sh", scratch / "loopfleet-healthy")
    (scratch / "loopfleet-healthy").chmod(0o755)
    (worker,) = debs.glob("loopfleet-worker_*.deb")
    version = worker.name.split("_")[1]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda daemon: make_image(daemon, version, out, scratch), DAEMONS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--debs", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("needs root rights: the files of an image have owners")
    if APART not in os.environ:
        # In a mount namespace of its own, so that its file system in memory ends with it. On a disk, dpkg takes
        # several times as long.
        os.environ[APART] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv])
    arguments.out.mkdir(parents=True, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix="lf-images-")
    try:
        run("mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", scratch)
        try:
            make_images(arguments.debs, arguments.out.resolve(), pathlib.Path(scratch))
        finally:
            run("umount", "--lazy", scratch)
    finally:
        os.rmdir(scratch)


if __name__ == "__main__":
    main()
