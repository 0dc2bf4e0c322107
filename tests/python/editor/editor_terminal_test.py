"""`loopfleet tune` on a terminal: tmux sends keys and reads the screen."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import blocks_of

from loopfleet import LoopTree
from loopfleet.schedule_file import put_schedule

ARTICLE = "benchmark://program-v0/positive_product33_48_64"
LOOPFLEET = os.path.join(os.environ["LOOPFLEET_BIN"], "loopfleet")
SOURCE = Path(os.environ["LOOPFLEET_SOURCE"])
GOLDEN = SOURCE / "tests/golden/editor"

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="WITHOUT tmux: deploy/dependencies.sh --tests installs it")


class Terminal:
    """A command in a tmux of its own. Figures of this machine would differ each time: it finds no compiler."""

    def __init__(self, folder, number, command, size, **environment):
        self._socket = str(folder / f"tmux{number}")
        settings = {"LOOPFLEET_PYTHON": sys.executable, "LOOPFLEET_BIN": "/nonexistent", "LC_ALL": "C.UTF-8",
                    "XDG_CACHE_HOME": str(folder), **environment}
        width, height = size
        self._tmux("new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder),
                   f"{shlex.join(command)}; echo exit code $?; exec sleep 600", environment={name: value for name, value in os.environ.items() if name != "NO_COLOR"} | settings)

    def _tmux(self, *arguments, environment=None):
        done = subprocess.run(["tmux", "-S", self._socket, "-f", "/dev/null", *arguments], capture_output=True, text=True,
                              env=environment, check=True)
        return done.stdout

    def send(self, *keys):
        for key in keys:
            self._tmux("send-keys", key)

    def screen(self, *options):
        return self._tmux("capture-pane", "-p", *options)

    def wait_for(self, text):
        """The screen once it shows the text and has come to rest."""
        deadline = time.monotonic() + 120
        before = ""
        while time.monotonic() < deadline:
            now = self.screen()
            if text in now and now == before:
                return now
            before = now
            time.sleep(0.1)
        raise AssertionError(f"'{text}' is not on the screen:\n{before}")

    def end(self):
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path):
    started = []

    def start(*arguments, command=(LOOPFLEET, "tune"), size=(120, 30), **environment):
        started.append(Terminal(tmp_path, len(started), [*command, *arguments], size, **environment))
        return started[-1]

    yield start
    for each in started:
        each.end()


@needs_tmux
@pytest.mark.parametrize("size", [(120, 30), (80, 24)])
def test_the_screen(terminal, size):
    tune = terminal(ARTICLE, "--c", "kernel.c", size=size)
    tune.wait_for("WORKER_LOST")
    tune.send("Down", "S-Down", "Up", "s", "3", "2", "Enter", "Up", "s", "8", "Enter", "Down", "Enter", "Down", "Enter",
              "Down", "Down", "S-Up", "S-Up", "s", "7")
    tune.wait_for("64 = 9 x 7 + 1")
    screen = tune.wait_for("WORKER_LOST")
    golden = GOLDEN / f"{size[0]}x{size[1]}.txt"
    if os.environ.get("LOOPFLEET_UPDATE_GOLDEN") == "1":
        golden.write_text(screen, encoding="utf-8")
    assert screen == golden.read_text(encoding="utf-8")


@needs_tmux
def test_it_leaves_the_terminal_and_prints_the_actions(terminal, tmp_path):
    tune = terminal(ARTICLE, "--c", "kernel.c", "--schedule", "schedules.jsonl")
    tune.wait_for("for m in 33")
    tune.send("s", "8", "Enter", "w", "Enter")
    tune.wait_for("written to schedules.jsonl")
    tune.send("q")
    said = tune.wait_for("exit code 0")
    assert "split_8\nexit code 0" in said
    assert "m in 4 r 1" in (tmp_path / "kernel.c").read_text()
    again = LoopTree(ARTICLE).split("m", 8)
    assert again.tree_key in (tmp_path / "schedules.jsonl").read_text()


@needs_tmux
def test_the_documents_example_edits_a_tensor(terminal, tmp_path):
    (block,) = blocks_of(SOURCE / "docs/EDITOR.md", "python")
    tune = terminal(command=(sys.executable, "-c", block))
    assert "m 64 x n 17" in tune.wait_for("for m in 64")
    tune.send("s", "8", "Enter", "q")
    assert "for m in 8 : L0\n for m' in 8 : L1\n" in tune.wait_for("exit code 0")
    assert "m in 8" in (tmp_path / "kernel.c").read_text()


@needs_tmux
def test_it_begins_with_the_schedule_of_the_file(terminal, tmp_path):
    (tmp_path / "program.ir").write_text(LoopTree(ARTICLE).serialize())
    put_schedule(tmp_path / "schedules.jsonl", LoopTree(ARTICLE).split("m", 8), None)
    tune = terminal("--ir", "program.ir", "--schedule", "schedules.jsonl")
    screen = tune.wait_for("for m in 4 r 1")
    assert "program.ir" in screen and "1 open" in screen


@needs_tmux
def test_without_colours_all_is_grey(terminal):
    def colours(**environment):
        tune = terminal(ARTICLE, COLORTERM="truecolor", **environment)
        tune.wait_for("legal here")
        return set(re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", tune.screen("-e")))

    assert any(len(set(colour)) > 1 for colour in colours())
    assert all(len(set(colour)) == 1 for colour in colours(NO_COLOR="1"))


def tune(*arguments, **environment):
    return subprocess.run([LOOPFLEET, "tune", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | {"LOOPFLEET_PYTHON": sys.executable} | environment)


@pytest.mark.parametrize("arguments, said", [
    ([ARTICLE], "the editor needs a terminal"),
    ([], "give either a benchmark's URI or --ir FILE"),
    ([ARTICLE, "--ir", "x"], "give either a benchmark's URI or --ir FILE"),
    (["mm-v0/mm64_64"], "no benchmark 'benchmark://mm-v0/mm64_64'"),
    (["--ir", "/nonexistent/ir"], "/nonexistent/ir"),
    ([ARTICLE, "--threads", "0"], "--threads")])
def test_what_cannot_be_started_says_why(arguments, said):
    done = tune(*arguments)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_without_the_package_or_python_it_says_what_to_install():
    without = tune(ARTICLE, PYTHONPATH="")
    assert without.returncode == 78 and "pip install '.[tui]'" in without.stderr
    nothing = tune(ARTICLE, LOOPFLEET_PYTHON="/nonexistent/python")
    assert nothing.returncode == 78 and "/nonexistent/python" in nothing.stderr
