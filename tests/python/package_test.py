"""The package as a user gets it: an sdist, a wheel built from it, and a fresh environment that runs the examples of
README and docs/PYTHON.md. Compiles the module, not optimised: the other tests use the optimised one."""

import email
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from documents import blocks_of

SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
PURE = SOURCE / "client/python/loopfleet"
DOCUMENTS = ("README.md", "docs/PYTHON.md")


def run(*command, cwd, **environment):
    """Runs a command without PYTHONPATH, so that the build tree's package is not found; returns its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-8000:]}"
    return done.stdout


def build(kind, source, out, *settings):
    # Uses the build tools of the tests' environment.
    run(sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", out, *settings, source, cwd=out)
    (made,) = out.glob({"--sdist": "*.tar.gz", "--wheel": "*.whl"}[kind])
    return made


@pytest.fixture(scope="module")
def folder():
    # A fixed folder in the build tree, so that ccache recognises the files.
    made = Path(os.environ["LOOPFLEET_BIN"]).parent / "package"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def sdist(folder):
    return build("--sdist", SOURCE, folder)


@pytest.fixture(scope="module")
def wheel(sdist, folder):
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    return build("--wheel", folder / sdist.name.removesuffix(".tar.gz"), folder,
                 "--config-setting=cmake.build-type=Debug")


@pytest.fixture(scope="module")
def fresh(wheel, folder):
    """The interpreter of an environment with the wheel and its extras, and nothing else of this project."""
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    python = folder / "env/bin/python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links",
        Path(sys.prefix) / "wheels", f"{wheel}[gym,dataset]", cwd=folder)  # fetched by make_environment.sh
    yield python
    shutil.rmtree(folder / "env")


def test_an_sdist_holds_what_the_module_is_made_of_and_nothing_else(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = set(run("git", "ls-files", cwd=SOURCE).splitlines()) if (SOURCE / ".git").exists() else names
    assert names - tracked == {"PKG-INFO"}, "nothing that a build left"
    assert {name.split("/")[0] for name in names} == {
        "CMakeLists.txt", "LICENSE", "PKG-INFO", "client", "cmake", "common", "deploy", "docs", "kernel",
        "pyproject.toml", "schema", "storage", "tensor", "worker"}
    # The hashes of debian-v0 are compiled in.
    assert [name for name in names if name.startswith("deploy/")] == ["deploy/llvm/debian-v0.toml"]
    assert {str(path.relative_to(SOURCE)) for path in PURE.rglob("*.py")} <= names
    assert sdist.stat().st_size < 1 << 20


def test_a_wheel_holds_the_module_its_stub_and_the_sources(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        facts = email.message_from_bytes(archive.read(metadata))
    pure = {f"loopfleet/{path.relative_to(PURE)}" for path in PURE.rglob("*.py")}
    (module,) = names - pure - {"loopfleet/_core.pyi", "loopfleet/py.typed", "loopfleet/_confined_start.c"}
    assert re.fullmatch(r"loopfleet/_core\..*\.so", module) and pure < names
    assert facts["License-Expression"] == "MIT" and facts.get_all("License-File") == ["LICENSE"]
    needs = facts.get_all("Requires-Dist")
    assert sorted(re.match(r"\w+", need)[0] for need in needs if "extra ==" not in need) == ["numpy", "pyzmq"]
    assert {"gym", "dataset", "models", "sb3", "ray", "torch", "tui"} <= set(facts.get_all("Provides-Extra"))


def examples():
    """Python blocks of the documents that are complete programs."""
    for document in DOCUMENTS:
        blocks = blocks_of(SOURCE / document, "python")
        whole = [block for block in blocks if re.match(r"import .*\bloopfleet\b|import gymnasium", block)]
        assert whole, document
        yield from (pytest.param(block, id=f"{document}-{number}") for number, block in enumerate(whole))


@pytest.mark.parametrize("block", list(examples()))
def test_what_the_documents_show_runs_in_a_fresh_environment(block, fresh, tmp_path):
    said = run(fresh, "-c", block, cwd=tmp_path)
    assert said.strip(), "each of them prints something"


def shell(command, fresh, tmp_path):
    return run("bash", "-euc", command, cwd=tmp_path,
               PATH=f"{fresh.parent}:{os.environ['LOOPFLEET_BIN']}:{os.environ['PATH']}")


def test_readmes_campaign_and_export(fresh, tmp_path):
    (block,) = (block for block in blocks_of(SOURCE / "README.md", "sh") if "campaign run" in block)
    assert "points = 500" in block
    said = shell(block.replace("points = 500", "points = 30"), fresh, tmp_path)
    assert "30 of 30 points" in said and "matmuls-data: train " in said


def test_readmes_search(fresh, tmp_path):
    (block,) = (block for block in blocks_of(SOURCE / "README.md", "") if "loopfleet search" in block)
    command = block.splitlines()[0].removeprefix("$ ")
    assert command.endswith("--seconds 10")
    said = shell(command.replace("--seconds 10", "--evaluations 20"), fresh, tmp_path)
    assert re.search(r"^best: .*\nuntuned: ", said, re.M)


def test_readmes_fleet(fresh, tmp_path):
    alone = ["unshare", "--user", "--map-root-user", "--net"]  # the document's ports are free in a network of its own
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("WITHOUT a network of its own: this system lets nobody make one (unshare --net)")
    (block,) = (block for block in blocks_of(SOURCE / "README.md", "sh") if "loopfleet-coordinator" in block)
    script = f"ip link set lo up; {block} kill %2 %1; wait"
    said = shell(shlex.join([*alone, "bash", "-euc", script]), fresh, tmp_path)
    assert re.search(r"^1 of 1 worker ready, 0 batches running", said, re.M)


def test_the_installed_package_is_the_wheels(fresh, tmp_path):
    said = run(fresh, "-c", "import loopfleet; print(loopfleet.__file__, loopfleet.__version__)", cwd=tmp_path)
    path, version = said.split()
    assert Path(path).is_relative_to(fresh.parent.parent)
    assert f"VERSION {version} " in (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    for command in ("loopfleet-campaign", "loopfleet-export"):
        assert "usage: " in run(fresh.parent / command, "--help", cwd=tmp_path)
