"""An emulated AArch64 machine that boots Debian's kernel and runs one program of ours. Its root file
system is in memory: the program, the libraries it needs, and a shell. It reaches this machine's loopback
address as 10.0.2.2. Needs qemu-system-aarch64 and build/aarch64-sysroot (deploy/aarch64/make_sysroot.sh)."""

import pathlib
import re
import shutil
import stat
import subprocess

import fleet

EMULATOR = "qemu-system-aarch64"
READELF = "aarch64-linux-gnu-readelf"
STRIP = "aarch64-linux-gnu-strip"
HOST_ADDRESS = "10.0.2.2"
NETWORK_MODULES = ("virtio_pci", "virtio_net")
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run/lock
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mkdir -p /dev/shm
/bin/busybox mount -t tmpfs shm /dev/shm
for module in {modules}; do /bin/busybox insmod /modules/$module.ko; done
/bin/busybox ip link set lo up
/bin/busybox ip address add 10.0.2.15/24 dev eth0
/bin/busybox ip link set eth0 up
/bin/busybox ip route add default via 10.0.2.2
export PATH=/bin
{program} </dev/null
echo "ended with $?"
/bin/busybox poweroff -f
"""


def missing(sysroot):
    """What the machine needs and this host lacks; "": nothing."""
    for name in (EMULATOR, READELF, STRIP):
        if shutil.which(name) is None:
            return f"{name} (deploy/dependencies.sh --tests)"
    return "" if sysroot.is_dir() else f"{sysroot} (deploy/aarch64/make_sysroot.sh)"


def libraries_of(binary, sysroot):
    """The shared libraries that a binary loads, and the loader: name -> file of the sysroot."""
    folders = [sysroot / "usr/lib/aarch64-linux-gnu", sysroot / "lib/aarch64-linux-gnu", sysroot / "lib"]
    found, waiting = {}, [binary]
    while waiting:
        headers = subprocess.run([READELF, "--wide", "--dynamic", "--program-headers", str(waiting.pop())],
                                 text=True, capture_output=True, check=True).stdout
        names = re.findall(r"Shared library: \[(.*)\]", headers)
        names += [pathlib.Path(p).name for p in re.findall(r"interpreter: (.*)\]", headers)]
        for name in names:
            if name in found:
                continue
            found[name] = next(folder / name for folder in folders if (folder / name).exists())
            waiting.append(found[name])
    return found


def modules_of(names, sysroot):
    """The kernel modules of these names, each after those that it needs: name -> file of the sysroot."""
    found = {}

    def add(name):
        (file,) = (sysroot / "lib/modules").rglob(f"{name}.ko")
        for needed in re.search(rb"\0depends=([^\0]*)\0", file.read_bytes())[1].decode().split(","):
            if needed and needed not in found:
                add(needed)
        found[name] = file

    for name in names:
        add(name)
    return found


class Archive:
    """A cpio archive in the form that the kernel unpacks at start."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.count = 0

    def add(self, name, mode, content=b""):
        self.count += 1
        fields = (self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        self.file.write(b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0")
        self.pad()
        self.file.write(content)
        self.pad()

    def pad(self):
        self.file.write(b"\0" * (-self.file.tell() % 4))

    def close(self):
        self.add("TRAILER!!!", 0)
        self.file.close()


class EmulatedMachine:
    """Boots at once, and runs `binary` with `arguments` as its only program, whose output is in `log`. `files`:
    further files, path in the machine -> content."""

    def __init__(self, binary, arguments, sysroot, folder, files):
        stripped = folder / binary.name
        subprocess.run([STRIP, "-o", stripped, binary], check=True)
        contents = {"bin/busybox": sysroot / "bin/busybox", f"bin/{binary.name}": stripped}
        libraries = libraries_of(stripped, sysroot)
        for name, file in libraries.items():
            contents[f"lib/{name}"] = file
        modules = modules_of(NETWORK_MODULES, sysroot)
        for name, file in modules.items():
            contents[f"modules/{name}.ko"] = file
        init = INIT.format(modules=" ".join(modules), program=" ".join([f"/bin/{binary.name}", *arguments]))
        image = folder / "machine.cpio"
        archive = Archive(image)
        directories = {str(parent) for name in [*contents, *files]
                       for parent in pathlib.PurePath(name).parents if str(parent) != "."}
        for directory in sorted(directories):
            archive.add(directory, stat.S_IFDIR | 0o755)
        for name, file in contents.items():
            archive.add(name, stat.S_IFREG | 0o755, file.read_bytes())
        for name, content in {**files, "init": init.encode()}.items():
            archive.add(name, stat.S_IFREG | (0o755 if name == "init" else 0o600), content)
        archive.close()
        (kernel,) = (sysroot / "boot").glob("vmlinuz-*")
        self.log = folder / "machine.log"
        self.log.touch()
        self.process = subprocess.Popen(
            [EMULATOR, "-machine", "virt", "-cpu", "neoverse-n1", "-smp", "2", "-m", "2G", "-nodefaults",
             "-nographic", "-no-reboot", "-kernel", str(kernel), "-initrd", str(image),
             "-append", "console=ttyAMA0 loglevel=3 panic=-1", "-serial", f"file:{self.log}",
             "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="],
            stdin=subprocess.DEVNULL, preexec_fn=fleet.die_with_parent)

    def stop(self):
        self.process.kill()
        self.process.wait()
