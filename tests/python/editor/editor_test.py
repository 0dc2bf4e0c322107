"""The schedule editor without a terminal."""

import json
import os
import queue
import random
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from editors import ARTICLE, edited
from tensors import numbers, own_cache  # noqa: F401

import loopfleet
import loopfleet.tensor as lt
from loopfleet import LoopfleetError, LoopTree, ScheduleError, Walk, _core
from loopfleet.tui.c_file import CFile
from loopfleet.tui.editor import Editor
from loopfleet.tui.graded_figure import GradedFigures
from loopfleet.tui.keys import HELP, KEYS, METHODS
from loopfleet.tui.line_profile import line_profile_of
from loopfleet.tui.local_figure import LocalFigures
from loopfleet.tui.number_text import change_text, clock_text, rate_text, sparkline, time_text
from loopfleet.tui.proposal import CannotAsk, Proposal, fleet_best_of
from loopfleet.tui.sources import Sources

# From the start tree to a scratch of 8 x 32 floats, as keys.
ARTICLE_KEYS = ["down", "shift+down", "up", "s", "3", "2", "enter", "up", "s", "8", "enter", "down", "enter", "down",
                "enter", "down", "down", "shift+up", "shift+up"]
ARTICLE_ACTIONS = ("down,swap_down,up,split_32,up,split_8,down,swap_down,down,down,swap_up,swap_up").split(",")


def replayed(actions, start=ARTICLE):
    walk = Walk(ir=LoopTree(start).serialize())
    for action in actions:
        assert walk.apply(action), action
    return LoopTree(walk.observe("ir"))


def typed(text):
    return ["space" if character == " " else character for character in text]


def test_the_articles_session_by_keys():
    editor = edited("shift+down")
    assert editor.tree == replayed(["swap_down"])
    assert _core.kernel_scratch_bytes(editor.tree.serialize()) == 33 * 48 * 4 == 1584 * 4
    editor = edited(*ARTICLE_KEYS)
    assert editor.message == "" and editor.actions == ARTICLE_ACTIONS
    assert editor.tree == replayed(ARTICLE_ACTIONS)
    assert str(editor.tree).startswith("for m in 4 r 1 : L0\n for n in 1 r 16 : L1\n  for k in 64 : L2\n")
    assert _core.kernel_scratch_bytes(editor.tree.serialize()) == 1024
    assert editor.tree.buffer("%5") == [("m", 8), ("n", 32)]


def test_the_cursor_moves_over_loops_and_operations_and_stops_at_both_ends():
    editor = edited("up")
    assert editor.cursor == 0 and not editor.is_error
    lines = len(str(editor.tree).splitlines())
    seen = []
    for _ in range(lines + 3):
        seen.append(editor.cursor)
        editor.press("down")
    assert seen == [*range(lines), lines - 1, lines - 1, lines - 1]
    editor.move_to(4)
    assert editor.cursor == 4
    editor.move_to(99)
    assert editor.cursor == 4, "there is no such line"


def test_a_drag_swaps_the_loop_along_and_stops_at_both_ends():
    editor = edited("enter")
    assert editor.is_dragging
    editor.press("up")
    assert editor.is_dragging and editor.cursor == 0 and "there is no loop above L0" in editor.message
    editor.press("down")
    assert editor.tree == replayed(["swap_down"]) and editor.tree.loop(editor.cursor).label == "m"
    editor.press("down")
    assert editor.tree == replayed(["swap_down", "swap_down"]) and editor.tree.loop(editor.cursor).label == "m"
    before = editor.tree
    for _ in range(3):
        editor.press("down")
        assert editor.is_error and "swap_down: " in editor.message and editor.tree == before
    editor.press("enter")
    assert not editor.is_dragging
    editor.press("up")
    assert editor.tree == before, "without a drag, arrows move"


def test_operations_cannot_be_dragged_split_merged_or_annotated():
    editor = edited("down", "down", "down")
    for key, said in (("enter", "drag: this is an operation"), ("s", "split: this is an operation"),
                      ("backspace", "is an operation: move to one of its loops"),
                      ("v", "is an operation"), ("space", "fold: only loops")):
        editor.press(key)
        assert said in editor.message and editor.is_error and not editor.is_dragging and editor.prompt is None
    assert len(editor.history.steps) == 1


@pytest.mark.parametrize("text, said", [
    ("0", "an inner size is from 2 to 33, not 0"), ("1", "an inner size is from 2 to 33, not 1"),
    ("34", "an inner size is from 2 to 33, not 34"), ("8x", "the inner size is a whole number, not '8x'"),
    ("", "the inner size is a whole number"), ("-8", "not '-8'"), ("٣", "not '٣'"), ("9" * 40, "a whole number")])
def test_a_split_that_cannot_be_is_explained_and_the_question_stays(text, said):
    editor = edited("s", *text)
    if text:
        assert said in editor.prompt.explanation, "while typing"
    editor.press("enter")
    assert editor.prompt is not None and said in editor.prompt.explanation
    assert len(editor.history.steps) == 1
    editor.press("escape")
    assert editor.prompt is None


def test_the_split_question_shows_what_would_be():
    editor = edited("s", "8")
    assert editor.prompt.question == "inner size?" and editor.prompt.explanation == "33 = 4 x 8 + 1"
    editor.press("backspace")
    editor.press("1")
    editor.press("1")
    assert editor.prompt.explanation == "33 = 3 x 11"
    for key in ("backspace", "backspace", "4", "enter"):
        editor.press(key)
    assert editor.prompt is None and editor.tree == replayed(["split_4"])
    editor.press("s")
    editor.press("3")
    assert editor.prompt.explanation == "33 = 2 x 12 + 9", "a block is 3 loops of 4"


def test_merge_takes_back_a_split_or_says_why_not():
    editor = edited("backspace")
    assert editor.message == "merge: there is no loop over m around L0 (for m in 33)"
    editor = edited("s", "8", "enter", "down", "backspace")
    assert editor.tree == editor.start and editor.actions == ["split_8", "down", "merge"]


def test_undo_to_the_start_redo_to_the_end_and_an_edit_in_between():
    editor = edited(*ARTICLE_KEYS)
    last, count = editor.tree, len(editor.history.steps)
    for _ in range(count + 2):
        editor.press("U")
    assert editor.tree == editor.start and editor.actions == [] and editor.message == "undo: this is the start"
    for _ in range(count + 2):
        editor.press("r")
    assert editor.tree == last and editor.actions == ARTICLE_ACTIONS and editor.message == "redo: nothing was undone"
    editor.press("u")
    editor.press("v")
    assert len(editor.history.steps) == count
    editor.press("r")
    assert editor.message == "redo: nothing was undone"


def test_undo_puts_the_cursor_where_it_was():
    editor = edited("down", "down", "shift+up", "down", "down", "down")
    assert editor.cursor == 4
    editor.press("u")
    assert editor.cursor == 2
    editor.press("r")
    assert editor.cursor == 4


def test_annotations_come_and_go_and_actions_are_recorded_while_they_suffice():
    editor = edited("down", "down", "v")
    assert editor.tree.annotation(2) == "vectorize" and editor.actions == ["down", "down", "vectorize"]
    editor.press("v")
    assert editor.tree == editor.start
    editor.press("n")
    assert editor.tree.annotation(2) == "unroll" and editor.actions[-1] == "unroll"
    editor.press("x")
    assert editor.tree == editor.start and editor.actions is not None
    editor.press("x")
    assert "has no annotation" in editor.message
    editor.press("p")
    assert editor.tree.annotation(2) == "cpu_parallel" and editor.actions is None
    editor.press("v")
    assert editor.actions is None, "nothing leads there"
    editor.press("u")
    editor.press("u")
    assert editor.actions is not None
    editor = edited("n")
    assert editor.tree.annotation(0) == "unroll" and editor.tree.annotation(1) == ""
    assert editor.actions is None, "the action unrolls the loops inside, too"


def test_reuse_decreases_and_increases():
    editor = edited("[")
    assert editor.tree == LoopTree(ARTICLE).decrease_reuse(0) and editor.actions is None
    editor.press("[")
    assert editor.message.startswith("less reuse: L0 (for m in 33): ")
    editor = edited("down", "down", "down", "[")
    assert editor.tree == LoopTree(ARTICLE).decrease_reuse("%2"), "also of one operation"


def test_reuse_that_shows_in_later_edits_only_is_a_step():
    editor = edited(*["down"] * 6, "[")  # the innermost loop of add, which write does not share anyway
    assert not editor.is_error and editor.history.now.label == "less reuse"
    assert editor.tree == editor.start and editor.tree.serialize() != editor.start.serialize()
    for _ in range(2):
        editor.press("[")
    assert editor.tree == LoopTree(ARTICLE).decrease_reuse("%5").decrease_reuse("%5").decrease_reuse("%5") != editor.start
    for line in range(9):
        for key in "[]":
            editor = edited(*["down"] * line)
            reason = next(choice.reason for choice in editor.legal if choice.key == key)
            editor.press(key)
            assert editor.is_error == bool(reason), (line, key)


def test_what_is_legal_with_reasons():
    editor = edited()
    reasons = {choice.name: choice.reason for choice in editor.legal}
    assert reasons["split 2..33"] == reasons["swap_down"] == reasons["vectorize"] == reasons["parallel"] == ""
    assert reasons["swap_up"] == "there is no loop above L0 (for m in 33)"
    assert reasons["merge"] == "there is no loop over m around L0 (for m in 33)"
    for choice in editor.legal:  # what the pane says is what the key does
        if choice.key == "S":
            continue
        other = edited({"⇧↑": "shift+up", "⇧↓": "shift+down", "⌫": "backspace"}.get(choice.key, choice.key))
        assert other.is_error == bool(choice.reason) and choice.reason in other.message


def test_folded_lines_are_stepped_over_and_stay_folded():
    editor = edited("down", "space")
    assert editor.visible_lines == [0, 1, 7, 8]
    editor.press("down")
    assert editor.cursor == 7
    editor.press("up")
    editor.press("up")
    editor.press("v")
    assert editor.visible_lines == [0, 1, 7, 8]
    editor.press("down")
    editor.press("space")
    assert len(editor.visible_lines) == 9


def test_an_edit_opens_what_hides_the_cursor():
    editor = edited("space", "s", "8", "enter")
    assert editor.cursor in editor.visible_lines
    for line in range(len(str(editor.tree).splitlines())):
        editor.move_to(line)
        assert editor.cursor in editor.visible_lines


def test_a_line_of_actions_means_what_it_means_in_a_job():
    editor = edited(":", *typed(" ".join(ARTICLE_ACTIONS)), "enter")
    assert editor.tree == replayed(ARTICLE_ACTIONS) and editor.actions == ARTICLE_ACTIONS
    assert len(editor.history.steps) == 7, "moves are no steps"
    editor = edited(":", *typed("down,unroll"), "enter")
    assert editor.tree == replayed(["down", "unroll"]) != LoopTree(ARTICLE).unroll("k")
    editor = edited(":", *typed("split_8 swap_down down"), "enter")
    assert editor.tree == replayed(["split_8"]) and editor.tree.loop(editor.cursor).label == "k"
    editor = edited(":", *typed("split_8 up down"), "enter")
    assert editor.prompt is not None and editor.prompt.explanation == "up: there is no loop above"
    assert editor.prompt.text == "up down", "what was done is not done again"
    for word, said in (("split_0", "split_0"), ("split_1", "split_1"), ("split_34", "from 2 to 33, not 34"),
                       ("split_" + "9" * 12, "9" * 12)):
        editor = edited(":", *typed(word), "enter")
        assert said in editor.prompt.explanation and editor.tree == editor.start
    editor = edited(":", *typed("down splt_8"))
    assert "unknown action 'splt_8'; nearest: split_8" in editor.prompt.explanation
    editor.press("enter")
    assert editor.tree == editor.start and editor.prompt is not None


@pytest.mark.parametrize("line", ["split_8 down undo undo", "down undo split_8", "down split_8 down undo swap_down",
                                  "dummy merge undo undo down", "split_8 merge down undo undo undo split_4"])
def test_undo_in_a_line_of_actions_takes_back_its_last_action(line):
    editor = edited(":", *typed(line), "enter")
    walk = Walk(ir=LoopTree(ARTICLE).serialize())
    assert all(walk.apply(action) for action in line.split())
    assert editor.prompt is None and editor.tree == LoopTree(walk.observe("ir")) and editor.cursor == walk.cursor


def test_undo_ends_a_line_of_actions_that_has_done_nothing():
    editor = edited("v", ":", *typed("down undo undo split_8"), "enter")
    assert editor.prompt.text == "undo split_8"
    assert editor.prompt.explanation == "undo: there is nothing to undo in this line; U undoes earlier edits"
    assert editor.tree == LoopTree(ARTICLE).vectorize("m") and editor.cursor == 0, "what was before the line stays"
    editor = edited(":", *typed("down split_8 up up undo"), "enter")
    assert editor.prompt.text == "up undo"
    for key in [*["backspace"] * len("up undo"), *"undo"]:
        editor.press(key)
    editor.press("enter")
    assert editor.prompt is None and editor.cursor == 1, "the line goes on where it ended"


def test_the_c_file_is_renamed_into_place_and_unchanged_text_is_not_written(tmp_path):
    path = tmp_path / "kernel.c"
    editor = edited(c_path=path)
    first = path.stat()
    assert path.read_text() == _core.c_source_of(editor.tree.serialize())
    editor.press("down")
    editor.press("U")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    editor.press("s")
    editor.press("8")
    editor.press("enter")
    assert path.stat().st_ino != first.st_ino, "another file"
    assert path.read_text() == editor.code == _core.c_source_of(editor.tree.serialize())
    assert [each.name for each in tmp_path.iterdir()] == ["kernel.c"]


def test_a_reader_of_the_c_file_never_sees_half_a_file(tmp_path):
    file = CFile(tmp_path / "kernel.c")
    whole = {text * 50_000 for text in "ab"}
    file.write("a" * 50_000)
    seen, over = set(), threading.Event()

    def read():
        while not over.is_set():
            seen.add((tmp_path / "kernel.c").read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(200):
        file.write("b" * 50_000)
        file.write("a" * 50_000)
    over.set()
    reader.join()
    assert seen and seen <= whole


def test_a_c_file_that_cannot_be_written_is_said_and_ends_nothing(tmp_path):
    editor = edited("s", "8", "enter", c_path=tmp_path / "nowhere" / "kernel.c")
    assert editor.message.startswith("the C file: ") and editor.tree == replayed(["split_8"])


def test_schedules_are_written_and_opened(tmp_path):
    path = tmp_path / "schedules.jsonl"
    other = LoopTree("benchmark://mm-v0/mm8_8_8")
    path.write_text(json.dumps({"program_key": other.program_key, "ir": other.serialize()}) + "\n")
    editor = edited(*ARTICLE_KEYS, "w", schedule_path=path)
    assert editor.prompt.text == str(path)
    editor.press("enter")
    assert editor.message == f"written to {path}"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 2 and rows[1]["ir"] == editor.tree.serialize() and rows[1]["gflops"] is None
    assert lt.load_schedules(path) == 2
    again = edited("o", "enter", schedule_path=path)
    assert again.tree == editor.tree and again.actions == editor.tree.actions_from(again.start)
    again.press("o")
    again.press("enter")
    assert again.message == "open: that is the schedule as it is"
    without = edited("o", "enter", start="benchmark://mm-v0/mm64_64_64", schedule_path=path)
    assert without.prompt.explanation.endswith("schedules.jsonl has no schedule of this program")
    path.write_text("nonsense\n")
    again.press("o")
    again.press("enter")
    assert "schedules.jsonl, line 1: no schedule" in again.prompt.explanation
    stranger = edited("o", "enter", start="benchmark://mm-v0/mm64_64_64", schedule_path=tmp_path / "none")
    assert stranger.prompt.explanation.startswith("cannot open: ")


# ---- figures


class Noted:
    """Stands for local or graded figures; tests deliver."""

    def __init__(self, deliver):
        self.deliver = deliver
        self.asked = []

    def measure(self, tree, threads, fresh=None):
        self.asked.append((tree.tree_key, threads, fresh))

    def close(self):
        self.asked.append("closed")


@pytest.fixture
def noted():
    made = {}

    def make(kind):
        return lambda deliver: made.setdefault(kind, Noted(deliver))

    return made, Sources(local=make("local"), graded=make("graded"), cluster="tcp://there:1")


@pytest.fixture(scope="module")
def outcome():
    """An outcome with figures, and one without."""
    with loopfleet.LocalCluster(), loopfleet.Client() as client:
        while True:
            good, bad = client.evaluate_many([(ARTICLE, []), (ARTICLE, ["up"])])
            if good.ok:
                return good, bad


def test_only_graded_figures_are_kept(noted, outcome):
    made, sources = noted
    editor = edited("s", "8", "enter", sources=sources)
    keys = [step.key for step in editor.history.steps]
    assert [key for key, _, _ in made["local"].asked] == [key for key, _, _ in made["graded"].asked] == keys
    assert editor.figure.is_measured and editor.figure.is_measured_here
    made["local"].deliver(keys[1], 4000.0, "")
    assert editor.figure.local_gflops is None, "another thread's news wait for pump()"
    assert editor.pump()
    assert editor.figure.local_gflops == pytest.approx(editor.start.flops() / 4000)
    assert editor.best is None
    made["graded"].deliver(keys[1], outcome[0], "")
    editor.pump()
    graded = editor.figure.graded
    assert graded.gflops == outcome[0].gflops and graded.grade in "ABCD" and graded.worker == outcome[0].worker
    assert editor.best.key == keys[1]


def test_a_failed_kernel_shows_its_code(noted, outcome):
    made, sources = noted
    editor = edited(sources=sources)
    made["graded"].deliver(editor.history.now.key, outcome[1], "")
    editor.pump()
    assert editor.figure.graded_failure == "INVALID_ACTION" and editor.message.startswith("INVALID_ACTION: ")
    made["graded"].deliver(editor.history.now.key, None, "no answer from the coordinator")
    editor.pump()
    assert editor.figure.graded_failure == "no answer" and editor.is_error


def test_a_local_figure_that_failed_says_why_unless_another_tree_is_shown(noted):
    made, sources = noted
    editor = edited(sources=sources)
    made["local"].deliver(editor.history.now.key, None, "WRONG_OUTPUT: %5 is 3 in place of 4")
    editor.pump()
    assert editor.figure.local_failure == "WRONG_OUTPUT: %5 is 3 in place of 4" and editor.figure.local_gflops is None
    assert editor.message == "local figure: WRONG_OUTPUT: %5 is 3 in place of 4" and editor.is_error
    left = editor.history.now.key
    editor.press("t")
    editor.press("escape")
    made["local"].deliver(left, None, "WRONG_OUTPUT: twice")
    editor.pump()
    assert editor.message == "", "it is said once"
    for key in ("s", "8", "enter"):
        editor.press(key)
    made["local"].deliver(left, None, "WRONG_OUTPUT: late")
    editor.pump()
    assert editor.message == "" and editor.figure_of(editor.history.steps[0]).local_failure == "WRONG_OUTPUT: late"
    editor.press("enter")
    editor.press("up")
    said = editor.message
    assert said.startswith("swap_up: ")
    made["local"].deliver(editor.history.now.key, None, "WRONG_OUTPUT: now")
    editor.pump()
    assert editor.message == said, "an answer to a key stays"


def test_a_tree_that_comes_back_is_measured_again_if_it_was_measured(noted, outcome):
    made, sources = noted
    editor = edited("s", "8", "enter", "u", sources=sources)
    assert made["graded"].asked[-1] == (editor.history.now.key, 1, False), "it never had a figure"
    made["graded"].deliver(editor.history.now.key, outcome[0], "")
    editor.pump()
    editor.press("r")
    editor.press("u")
    assert made["graded"].asked[-1] == (editor.history.now.key, 1, True)
    assert editor.figure.graded is not None, "the old figure stands until the new one comes"


def test_threads_apply_to_figures_from_then_on(noted):
    made, sources = noted
    editor = edited("t", "0", "enter", sources=sources)
    assert editor.prompt.explanation == "from 1 to 1024 threads, not 0"
    for key in ("backspace", "4", "enter"):
        editor.press(key)
    assert editor.threads == 4 and made["local"].asked[-1][1] == made["graded"].asked[-1][1] == 4


def test_a_tree_left_while_queued_is_cancelled():
    followed = []

    class Client:
        def _follow(self, jobs, put):
            followed.append({"jobs": jobs, "put": put, "is_cancelled": False})
            return SimpleNamespace(cancel=lambda mine=followed[-1]: mine.update(is_cancelled=True))

    heard = []
    graded = GradedFigures(Client(), lambda *news: heard.append(news))
    first, second = LoopTree(ARTICLE), LoopTree(ARTICLE).split("m", 8)
    graded.measure(first, 1, fresh=False)
    graded.measure(second, 2, fresh=True)
    assert [each["is_cancelled"] for each in followed] == [True, False]
    lines = [json.loads(each["jobs"][0].line) for each in followed]
    assert lines[0]["affinity"] == lines[1]["affinity"] and lines[0]["priority"] == lines[1]["priority"] > 0
    assert lines[1]["fresh"] and lines[1]["threads"] == 2 and lines[1]["ir"] == second.serialize()
    followed[0]["put"]([(0, "late")])
    assert heard == [], "what was left is not heard of"
    followed[1]["put"]([(0, "figure")])
    followed[1]["put"](LoopfleetError("gone"))
    assert heard == [(second.tree_key, "figure", ""), (second.tree_key, None, "gone")]
    graded.close()
    assert followed[1]["is_cancelled"]


def test_local_figures_are_those_of_the_newest_tree():
    heard = []
    came = threading.Event()

    def deliver(*news):
        heard.append(news)
        came.set()

    local = LocalFigures(deliver)
    trees = [LoopTree(ARTICLE).split("L2", inner) for inner in range(2, 40)]
    for tree in trees:
        local.measure(tree, 1)
    deadline = time.monotonic() + 120
    while not any(key == trees[-1].tree_key for key, _, _ in heard) and time.monotonic() < deadline:
        came.wait(1)
        came.clear()
    local.close()
    assert heard[-1][0] == trees[-1].tree_key and heard[-1][1] > 0 and heard[-1][2] == ""
    assert len(heard) < len(trees), "those that others followed were dropped"


def test_a_kernel_without_code_says_why_in_place_of_its_local_figure(monkeypatch):
    monkeypatch.setenv("LOOPFLEET_BIN", "/nonexistent")
    heard = []
    local = LocalFigures(lambda *news: heard.append(news))
    local.measure(LoopTree(ARTICLE), 1)
    deadline = time.monotonic() + 60
    while not heard and time.monotonic() < deadline:
        time.sleep(0.01)
    local.close()
    ((_, ns, failure),) = heard
    assert ns is None and failure.startswith("WORKER_LOST: ")


def test_a_timer_that_cannot_be_made_says_why_and_is_made_again(monkeypatch):
    made = []

    def local_timer(threads):
        made.append(threads)
        raise LoopfleetError("no threads left")

    monkeypatch.setattr(sys.modules["loopfleet.tensor.backends"], "local_timer", local_timer)
    came = queue.SimpleQueue()
    local = LocalFigures(lambda *news: came.put(news))
    tree = LoopTree(ARTICLE)
    for threads in (1, 2):
        local.measure(tree, threads)
        assert came.get(timeout=60) == (tree.tree_key, None, "no threads left")
    local.close()
    assert made == [1, 2]


# ---- others' trees


def asked(editor):
    editor.press("f")
    assert editor.message == "asking the fleet ..."
    assert editor.pump(timeout=30)
    return editor


def test_the_fleets_best_is_previewed_and_taken_or_left():
    best = LoopTree(ARTICLE).split("m", 8)
    offer = [Proposal(best, 203.9, "A", "fleet best, node7")]
    editor = asked(edited(sources=Sources(fleet=lambda *asked: offer)))
    assert editor.preview == offer[0] and editor.tree == editor.start
    editor.press("escape")
    assert editor.preview is None and editor.tree == editor.start
    editor = asked(editor)
    editor.press("down")
    assert editor.preview is None and editor.cursor == 1, "any other key leaves it and does what it does"
    editor = asked(editor)
    editor.press("enter")
    assert editor.tree == best and editor.history.now.label == "fleet best" and editor.actions == ["split_8"]
    assert editor.fleet_best == offer[0]


def test_a_fleet_that_knows_nothing_or_another_program_or_cannot_be_asked():
    editor = asked(edited(sources=Sources(fleet=lambda *asked: [])))
    assert editor.message.startswith("the fleet knows no figure")
    other = Proposal(LoopTree("benchmark://mm-v0/mm8_8_8"), 1.0, "A", "fleet best")
    editor = asked(edited(sources=Sources(fleet=lambda *asked: [other])))
    editor.press("enter")
    assert "of another program" in editor.message and editor.tree == editor.start
    editor = asked(edited())
    assert editor.is_error and "there is no cluster to ask" in editor.message

    class Old:
        pass

    with pytest.raises(CannotAsk, match="this client cannot ask"):
        fleet_best_of(Old())(LoopTree(ARTICLE), 1, "")
    with pytest.raises(CannotAsk, match="this client cannot profile"):
        line_profile_of(Old())(LoopTree(ARTICLE), 1)

    def broken(*asked):
        raise RuntimeError("no such thing")

    assert asked(edited(sources=Sources(fleet=broken))).message == "RuntimeError: no such thing"


def test_a_client_that_can_is_asked_for_this_programs_best_on_this_hardware(noted, outcome):
    made, sources = noted
    tree, asked_for = LoopTree(ARTICLE).split("m", 8), []

    class Knowing:
        def find_best(self, tree, *, threads, hardware_class, limit):
            asked_for.append((tree.program_key, threads, hardware_class, limit))
            return [SimpleNamespace(tree=best, outcome=outcome[0])]

    best = tree
    sources = replace(sources, fleet=fleet_best_of(Knowing()))
    editor = edited(sources=sources, threads=2)
    made["graded"].deliver(editor.history.now.key, outcome[0], "")
    editor.pump()
    asked(editor)
    assert asked_for == [(tree.program_key, 2, outcome[0].to_dict()["hardware"]["class"], 1)]
    assert editor.preview.tree == tree and editor.preview.gflops == outcome[0].gflops
    assert editor.preview.origin.startswith(f"fleet best, {outcome[0].worker}, 20")


class Searching:
    def __init__(self, deliver):
        self.deliver, self.started, self.is_stopped = deliver, [], False

    def start(self, tree, threads):
        self.started.append(tree)

    def stop(self):
        self.is_stopped = True

    close = stop


def test_a_search_offers_its_best_and_takes_nothing_by_itself():
    made = []
    editor = edited("b", sources=Sources(search=lambda deliver: made.append(Searching(deliver)) or made[0]))
    search = made[0]
    assert search.started == [editor.start] and editor.search.is_running
    best = Proposal(LoopTree(ARTICLE).split("L2", 16), 120.0, "", "search, 212 trees")
    search.deliver(212, 41.0, best, True, "")
    editor.pump()
    assert editor.search.trees == 212 and editor.tree == editor.start and editor.preview is None
    editor.press("b")
    assert search.is_stopped and editor.preview == best and editor.search is None
    search.deliver(300, 50.0, best, False, "")
    editor.pump()
    assert editor.search is None, "it was stopped"
    editor.press("enter")
    assert editor.tree == best.tree and editor.history.now.label == "search"
    assert edited("b").message.startswith("the search measures on workers, and there is no cluster")


def test_a_search_ends_with_the_threads_that_it_was_for():
    made = []
    editor = edited("b", sources=Sources(search=lambda deliver: made.append(Searching(deliver)) or made[0]))
    made[0].deliver(3, 1.0, Proposal(LoopTree(ARTICLE).split("L2", 16), 120.0, "", "search, 3 trees"), True, "")
    editor.pump()
    for key in ("t", "1", "enter"):
        editor.press(key)
    assert editor.search.is_running and not made[0].is_stopped, "they are the same"
    for key in ("t", "4", "enter"):
        editor.press(key)
    assert editor.search is None and made[0].is_stopped and editor.preview is None
    assert editor.message == "the search is stopped: its figures are of another number of threads; B starts one" and not editor.is_error
    editor.press("b")
    assert len(made[0].started) == 2 and editor.search.is_running


# ---- tensors


def positive_product(a, b):
    m, n, k = lt.symbols("m n k")
    return (lt.Tensor(a).to(m, k) * lt.Tensor(b).to(k, n)).max(0).sum(k)


def test_each_step_is_the_tensors_schedule():
    tensor = positive_product(numbers(33, 64), numbers(64, 48, seed=1))
    editor = Editor(tensor.loop_tree, on_tree=tensor.set)
    for key in ("s", "8", "enter"):
        editor.press(key)
    assert tensor.loop_tree == editor.tree
    editor.press("u")
    assert tensor.loop_tree == editor.tree == editor.start


def test_ten_thousand_random_keys_leave_a_legal_tree_that_its_actions_lead_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # W writes files of any name
    a, b = numbers(33, 64), numbers(64, 48, seed=1)
    tensor = positive_product(a, b)
    editor = Editor(tensor.loop_tree, on_tree=tensor.set, c_path=tmp_path / "kernel.c")
    generator = random.Random(7)
    names = [name for name in METHODS if METHODS[name] not in ("quit", "ask_write")]
    keys = names + ["up", "down", "enter", "escape"] * 6 + list("0123456789") * 2 + ["s", "backspace"] * 8
    replays = 0
    for count in range(10_000):
        editor.press(generator.choice(keys))
        editor.pump()
        assert editor.cursor in editor.visible_lines
        if count % 23 == 0:
            assert LoopTree(editor.tree.serialize()) == editor.tree == tensor.loop_tree
            if editor.actions is not None:
                replays += 1
                assert replayed(editor.actions, editor.start.serialize()) == editor.tree
    assert replays > 3 and len(editor.history.steps) > 20
    for _ in range(4):
        np.testing.assert_allclose(tensor.numpy(), np.maximum(a[:, :, None] * b[None], 0).sum(1), rtol=1e-4, atol=1e-4)
        editor.press("escape")
        editor.press("u")
        tensor.force_recompute()


# ---- words


def test_numbers_are_short():
    assert [rate_text(value) for value in (7.314, 97.64, 203.9)] == ["7.31", "97.6", "204"]
    assert [time_text(value) for value in (4153, 12.3, 3.2e6, 2e9)] == ["4.15 us", "12.3 ns", "3.2 ms", "2 s"]
    assert [change_text(100, value) for value in (131, 96, 99.9, 320)] == ["+31 %", "-4 %", "0 %", "x3.2"]
    assert sparkline([1, 4.5, 8], 2) == "▅█" and sparkline([100, 101], 5) == "▄▄" and sparkline([], 5) == ""
    assert clock_text(101) == "01:41"


def test_each_key_has_a_method_and_help():
    words = {word for keys, _ in HELP for word in keys.split()}
    assert words == {key.shown for key in KEYS}
    assert all(callable(getattr(Editor, key.method)) for key in KEYS)
    assert len(METHODS) == sum(len(key.names) for key in KEYS), "no key means two things"


def test_programs_without_loops_and_with_one_operation_can_be_edited():
    tensor = lt.Tensor(3.0) + lt.Tensor(2.0)
    editor = Editor(tensor.loop_tree, on_tree=tensor.set)
    for key in (*METHODS, "1", "enter"):
        if METHODS.get(key) not in ("quit", "ask_write", "ask_open"):
            editor.press(key)
            editor.press("escape")
    assert editor.tree == editor.start and editor.cursor in editor.visible_lines
    assert all(choice.reason for choice in editor.legal)


def test_importing_loopfleet_imports_no_textual():
    code = "import sys, loopfleet, loopfleet.loop_tool; assert callable(loopfleet.ui) and 'textual' not in sys.modules and 'rich' not in sys.modules"
    done = loopfleet_python("-c", code)
    assert done.returncode == 0, done.stderr


def loopfleet_python(*arguments, **environment):
    import subprocess
    import sys

    return subprocess.run([sys.executable, *arguments], env=os.environ | environment, capture_output=True, text=True)


def test_without_textual_it_says_what_to_install(tmp_path):
    (tmp_path / "hide.py").write_text("import importlib.util as u\nfound = u.find_spec\n"
                                      "u.find_spec = lambda name, *rest: None if name == 'textual' else found(name, *rest)\n")
    code = "import hide, loopfleet\ntry: loopfleet.ui(None)\nexcept loopfleet.LoopfleetError as error: print(error)"
    done = loopfleet_python("-c", code, PYTHONPATH=f"{tmp_path}:{os.environ['PYTHONPATH']}")
    assert done.stdout.strip() == ("the editor needs the package Textual: pip install '.[tui]' in loopfleet's repository, or "
                                   "'FILE.whl[tui]' with its wheel"), done.stderr
