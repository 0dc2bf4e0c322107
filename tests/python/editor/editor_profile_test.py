"""The shares of lines in the schedule editor: when they are asked for, and of which tree they are."""

from types import SimpleNamespace

import pytest
from editors import ARTICLE, edited
from processes import wait_until

from loopfleet import LoopfleetError, LoopTree
from loopfleet.tui import profiling
from loopfleet.tui.line_profile import line_profile_of
from loopfleet.tui.sources import Sources


def test_a_client_that_can_is_asked_for_a_profile():
    def line(ref, part, total, known=True):
        return SimpleNamespace(ref=ref, part=part, share=0.0, total=total, known=known)

    class Profiling:
        ok, status, message = True, "ok", ""
        lines = (line(0, "node", 1.0), line(0, "zero", 0.1), line(1, "node", 0.9), line(2, "node", 0.0, known=False))

        def profile(self, *, ir, threads):
            assert LoopTree(ir) == LoopTree(ARTICLE) and threads == 1
            return self

    assert line_profile_of(Profiling())(LoopTree(ARTICLE), 1) == {0: 1.0, 1: 0.9}
    Profiling.ok, Profiling.status, Profiling.message = False, "UNSUPPORTED", "not here"
    with pytest.raises(LoopfleetError, match="UNSUPPORTED: not here"):
        line_profile_of(Profiling())(LoopTree(ARTICLE), 1)


def test_lines_are_profiled_or_it_is_said_why_not():
    editor = edited("d")
    assert editor.pump(timeout=30) and "there is no cluster" in editor.message
    editor = edited("d", sources=Sources(profile=lambda tree, threads: {0: 1.0, 2: 0.4}))
    assert editor.pump(timeout=30) and editor.shares == {0: 1.0, 2: 0.4}
    editor.press("v")
    assert editor.shares == {}, "they were the other tree's"


def test_lines_are_profiled_again_after_a_rest_once_they_were_asked_for(monkeypatch):
    monkeypatch.setattr(profiling, "REST_S", 0.2)
    asked = []

    def profile(tree, threads):
        asked.append((tree, threads))
        if threads == 8:
            raise LoopfleetError("UNSUPPORTED: not here")
        return {0: 1.0, 1: len(asked) / 10}

    editor = edited("s", "8", "enter", sources=Sources(profile=profile))
    assert not editor.pump(timeout=0.5) and asked == [], "none was asked for"
    editor.press("d")
    assert editor.message == "profiling ..."
    assert editor.pump(timeout=30) and editor.shares == {0: 1.0, 1: 0.1} and editor.message == ""
    editor.press("v")
    editor.press("v")
    editor.press("n")
    assert editor.shares == {} and len(asked) == 1, "not before it rests"
    while not editor.shares:
        assert editor.pump(timeout=30)
    assert asked[1:] == [(editor.tree, 1)] and editor.shares == {0: 1.0, 1: 0.2}, "the last of three trees"
    editor.press("down")
    assert editor.shares, "it is the same tree"
    for key in ("t", "8", "enter"):
        editor.press(key)
    assert editor.shares == {}, "they were of one thread"
    while "UNSUPPORTED" not in editor.message:
        assert editor.pump(timeout=30)
    editor.press("u")
    assert not editor.pump(timeout=0.5) and len(asked) == 3, "a profile failed: D asks for the next"
    editor.close()


@pytest.mark.parametrize("has_rested", [False, True])
def test_no_profile_comes_after_the_end(monkeypatch, has_rested):
    monkeypatch.setattr(profiling, "REST_S", 0.1)
    asked = []
    editor = edited("d", sources=Sources(profile=lambda tree, threads: asked.append(tree) or {0: 1.0}))
    assert editor.pump(timeout=30)
    editor.press("v")
    if has_rested:
        wait_until(lambda: not editor.inbox._calls.empty(), "a profile of the tree is about to be asked for")
    editor.close()
    while editor.pump(timeout=0.3):
        pass
    assert len(asked) == 1
