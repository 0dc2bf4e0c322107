"""The schedule editor on Textual's screen without a terminal: keys, sizes, colours, and with a cluster whose worker
ends."""

import asyncio
import os
import random
import signal
import time

import numpy as np
import pytest
from tensors import numbers, own_cache  # noqa: F401
from textual import events

import loopfleet
import loopfleet.tensor as lt
from loopfleet import LoopTree, Walk, _core
from loopfleet.tui.editor import Editor
from loopfleet.tui.keys import HELP, METHODS
from loopfleet.tui.pane import window
from loopfleet.tui.proposal import Proposal
from loopfleet.tui.screen import EditorApp
from loopfleet.tui.sources import Sources, sources_of

ARTICLE = "benchmark://program-v0/positive_product33_48_64"
ARTICLE_KEYS = ["down", "shift+down", "up", "s", "3", "2", "enter", "up", "s", "8", "enter", "down", "enter", "down",
                "enter", "down", "down", "shift+up", "shift+up"]


def on_screen(play, start=ARTICLE, size=(120, 30), **options):
    """Runs play(editor, app, pilot) on a screen of this size."""

    async def run():
        editor = Editor(LoopTree(start) if isinstance(start, str) else start, title="positive_product33_48_64", **options)
        app = EditorApp(editor)
        try:
            async with app.run_test(size=size) as pilot:
                await play(editor, app, pilot)
        finally:
            editor.close()

    asyncio.run(run())


def text_of(app):
    """What the screen shows, line by line."""
    return ["".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips()]


async def until(pilot, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await pilot.pause(0.02)


def test_the_articles_session_by_keys_alone():
    async def play(editor, app, pilot):
        await pilot.press(*ARTICLE_KEYS)
        shown = "\n".join(text_of(app))
        assert "scratch 1,024 B = 256 floats" in shown and "8 x 32 = 256 floats" in shown
        assert "for m in 4 r 1 : L0" in shown and "for n in 1 r 16 : L1" in shown
        assert _core.kernel_scratch_bytes(editor.tree.serialize()) == 1024
        assert "6 of 6" in shown and "> " in shown

    on_screen(play)


def test_a_drag_at_both_ends_and_questions_are_shown():
    async def play(editor, app, pilot):
        await pilot.press("enter", "up")
        assert any("dragging m" in line for line in text_of(app)) and "no loop above" in "".join(text_of(app))
        await pilot.press("down", "down", "down", "down", "enter")
        assert editor.tree.loop(editor.cursor).label == "m" and editor.cursor == 2 and not editor.is_dragging
        await pilot.press("s")
        for text, said in (("0", "from 2 to 33, not 0"), ("1", "not 1"), ("34", "not 34"), ("ab", "not 'ab'"),
                           ("8", "33 = 4 x 8 + 1")):
            await pilot.press(*text)
            assert said in text_of(app)[-2]
            await pilot.press(*["backspace"] * len(text))
        await pilot.press("escape", "u", "u")
        assert editor.tree == editor.start
        await pilot.press("r", "r", "q")

    on_screen(play)


def test_what_is_illegal_is_dim_and_explained_when_pressed():
    async def play(editor, app, pilot):
        await pilot.press("backspace")
        assert "merge: there is no loop over m around L0 (for m in 33)" in text_of(app)[-2]

    on_screen(play)


@pytest.mark.parametrize("size", [(120, 30), (99, 30), (80, 24), (59, 20), (40, 12), (20, 6), (200, 60)])
def test_each_size_shows_the_cursor(size):
    async def play(editor, app, pilot):
        await pilot.press("down", "down", "down")
        lines = text_of(app)
        assert len(lines) == size[1] and all(len(line) == size[0] for line in lines)
        if size[1] > 6:
            assert any("> " in line for line in lines)
        assert ("legal here" in "".join(lines)) == (size[1] >= 18)
        assert ("done" in "".join(lines)) == (size[1] >= 18 and size[0] >= 60)

    on_screen(play, size=size)


def test_resizing_moves_the_code_into_a_view_and_back():
    async def play(editor, app, pilot):
        assert "loopfleet_kernel" in "".join(text_of(app))
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert editor.is_narrow and "= buffers[" not in "".join(text_of(app))
        await pilot.press("tab")
        assert "= buffer" in "".join(text_of(app)) and editor.view == "c"
        await pilot.press("s", "8", "enter")
        assert editor.tree.loop(0).size == 4, "keys work all the same"
        await pilot.resize_terminal(120, 30)
        await pilot.pause()
        shown = "".join(text_of(app))
        assert "loopfleet_kernel" in shown and "for m in 4 r 1" in shown and not editor.is_narrow

    on_screen(play)


def test_the_views_are_c_llvm_ir_assembly_and_graphviz():
    async def play(editor, app, pilot):
        for view, sign in (("llvm-ir", "define "), ("asm", "."), ("dot", "digraph")):
            await pilot.press("tab")
            assert editor.view == view
            await until(pilot, lambda: editor.code != "")
            assert sign in editor.code
        await pilot.press("tab")
        assert editor.view == "c"

    on_screen(play)


def test_help_shows_every_key():
    async def play(editor, app, pilot):
        await pilot.press("?")
        shown = "".join(text_of(app))
        assert all(text in shown for _, text in HELP)
        await pilot.press("escape")
        assert HELP[0][1] not in "".join(text_of(app))

    on_screen(play, size=(80, 24))


def test_a_click_moves_the_cursor():
    async def play(editor, app, pilot):
        await pilot.click("#schedule", offset=(10, 3))
        assert editor.cursor == 2

    on_screen(play)


def test_text_is_pasted_into_a_question_only():
    async def play(editor, app, pilot):
        app.post_message(events.Paste("uvx"))
        await pilot.press(":")
        app.post_message(events.Paste("split_8\ndown"))
        await pilot.press("enter")
        assert editor.actions == ["split_8"] and editor.cursor == 1

    on_screen(play)


def test_a_preview_is_shown_in_place_of_the_tree():
    best = LoopTree(ARTICLE).split("m", 8)

    async def play(editor, app, pilot):
        await pilot.press("f")
        await until(pilot, lambda: editor.preview is not None)
        await pilot.pause()
        shown = "".join(text_of(app))
        assert "fleet best, node7" in shown and "for m in 4 r 1" in shown and "Enter takes it" in shown
        assert "fleet best 204 A" in shown
        await pilot.press("enter")
        assert editor.tree == best

    on_screen(play, sources=Sources(fleet=lambda *asked: [Proposal(best, 203.9, "A", "fleet best, node7")]))


def test_names_in_titles_are_no_markup(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "[wip]" / "[").mkdir(parents=True)

    async def play(editor, app, pilot):
        assert "[wip]/[/x].c" in "".join(text_of(app))
        await pilot.press("f")
        await until(pilot, lambda: editor.preview is not None)
        await pilot.pause()
        assert any("─ fleet best, node[/7] ─" in line for line in text_of(app))

    best = Proposal(LoopTree(ARTICLE).split("m", 8), 203.9, "A", "fleet best, node[/7]")
    on_screen(play, c_path="[wip]/[/x].c", sources=Sources(fleet=lambda *asked: [best]))


def test_ten_thousand_random_keys_on_a_screen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a, b = numbers(33, 64), numbers(64, 48, seed=1)
    m, n, k = lt.symbols("m n k")
    tensor = (lt.Tensor(a).to(m, k) * lt.Tensor(b).to(k, n)).max(0).sum(k)
    generator = random.Random(11)
    names = [name for name in METHODS if METHODS[name] not in ("quit", "ask_write")]
    keys = names + ["up", "down", "enter", "escape"] * 6 + list("0123456789") * 2 + ["s", "backspace"] * 8

    async def play(editor, app, pilot):
        for count in range(10_000):
            key = generator.choice(keys)
            app.post_message(events.Key(key, key if len(key) == 1 else None))
            if count % 500 == 0:
                await pilot.pause()
                assert LoopTree(editor.tree.serialize()) == editor.tree == tensor.loop_tree
        await pilot.pause()
        assert editor.tree == tensor.loop_tree and len(editor.history.steps) > 20
        while editor.actions is None:
            await pilot.press("escape", "u")
        walk = Walk(ir=editor.start.serialize())
        assert all(walk.apply(action) for action in editor.actions)
        assert LoopTree(walk.observe("ir")) == editor.tree
        np.testing.assert_allclose(tensor.numpy(), np.maximum(a[:, :, None] * b[None], 0).sum(1), rtol=1e-4, atol=1e-4)

    on_screen(play, start=tensor.loop_tree, on_tree=tensor.set, c_path=tmp_path / "kernel.c")


def test_figures_come_while_one_edits_and_the_editor_outlives_its_worker():
    with loopfleet.LocalCluster(workers=1), loopfleet.Client() as client:

        async def play(editor, app, pilot):
            deadline = time.monotonic() + 120
            while editor.figure.graded is None or editor.figure.local_gflops is None:
                assert time.monotonic() < deadline, "it did not happen in time"
                if editor.figure.graded_failure == "UNSTABLE_TIMING" and not editor.figure.is_measured:
                    await pilot.press("v", "v")  # another tree and back: the host was too busy for a figure
                await pilot.pause(0.02)
            await pilot.pause()
            assert "GFLOP/s" in text_of(app)[1] and " local" in text_of(app)[1] and "worker " in text_of(app)[0]
            await pilot.press("b")
            await until(pilot, lambda: editor.search.best is not None, 120)
            await pilot.press("b")
            assert editor.preview.gflops > 0 and editor.tree == editor.start
            await pilot.press("enter")
            assert editor.history.now.label == "search" or "as it is" in editor.message
            while editor.tree != editor.start:
                await pilot.press("u")
            (worker,) = client.workers()
            os.kill(worker["pid"], signal.SIGKILL)
            await pilot.press("s", "8", "enter")
            await until(pilot, lambda: editor.figure.local_gflops is not None)
            for service in children_of(os.getpid(), "serve"):
                os.kill(service, signal.SIGKILL)
            await pilot.press("down", "shift+down")
            await until(pilot, lambda: not editor.figure.is_measured_here)
            assert editor.figure.local_gflops is not None, "the compiler is started again"
            await pilot.press("u", "u")
            assert editor.tree == editor.start

        on_screen(play, sources=sources_of(client))


def children_of(pid, argument):
    """The children of a process that have the argument."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            for child in file.read().split():
                with open(f"/proc/{child}/cmdline", "rb") as command:
                    if argument.encode() in command.read().split(b"\0"):
                        found.append(int(child))
    return found


def test_a_window_keeps_its_place_and_the_current_line_in_sight():
    assert window(10, 20, 3, 5) == 0, "all fit"
    assert window(100, 10, None, 40) == 40
    assert window(100, 10, 0, 40) == 0 and window(100, 10, 99, 0) == 90
    assert window(100, 10, 45, 40) == 40, "it is in sight"
    assert window(100, 10, 50, 40) == 43 and window(100, 10, 41, 40) == 39, "with lines around it"
    assert window(3, 1, 2, 0) == 2
