"""Editor: a loop tree with a cursor, edited key by key. All that the screen shows, without a screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from .. import _core
from .._core import MOST_THREADS, JobError, LoopTree
from ..errors import ScheduleError
from ..schedule_file import find_schedule, put_schedule
from . import action_line, code_view, edits
from .c_file import CFile
from .code_view import CodeView
from .edits import Edit
from .figures import Figures, Graded
from .folds import Folds
from .history import History, Step
from .inbox import Inbox
from .keys import method_of
from .legality import Choice, choices
from .measuring import Measuring
from .profiling import Profiling
from .prompt import Prompt, split_text, whole_number
from .proposal import CannotAsk, Proposal
from .recording import Recording, recording_of
from .sources import Sources


@dataclass
class SearchState:
    is_running: bool
    trees: int = 0
    seconds: float = 0
    best: Proposal | None = None


class Editor:
    """Its methods are what keys do (keys.py). What cannot be done changes nothing, and ``message`` says why.

    One thread owns it. Other threads' news wait in ``inbox`` until that thread calls pump(). Listeners are called
    after each change. ``on_tree`` is called with each tree that becomes the one that is edited."""

    def __init__(self, start: LoopTree, *, title: str = "", threads: int = 1, sources: Sources | None = None,
                 c_path: str | os.PathLike = "", schedule_path: str | os.PathLike = "",
                 on_tree: Callable[[LoopTree], object] | None = None):
        self.start = start
        self.title = title
        self.threads = threads
        self.cursor = 0
        self.is_dragging = False
        self.prompt: Prompt | None = None
        self.preview: Proposal | None = None
        self.message = ""
        self.is_error = False  # the message says why something could not be done
        self.shows_help = False
        self.is_over = False
        self.is_narrow = False
        self.view = "c"
        self.search: SearchState | None = None
        self.fleet_best: Proposal | None = None
        self.folds = Folds()
        self.history = History(Step("start", start, start.tree_key, 0, Recording()))
        self.sources = sources or Sources()
        self.inbox = Inbox()
        self._codes: dict[tuple[str, str], str] = {}  # by tree key and view
        self._choices: list[Choice] | None = None
        self._scratch: tuple[str, int | None] | None = None  # by tree key
        self._listeners: list[Callable[[], None]] = []
        self._c_file = CFile(c_path) if os.fspath(c_path) else None
        self._schedule_path = os.fspath(schedule_path)
        self._on_tree = on_tree
        self._code_view = CodeView(self.inbox.post(self._on_code))
        self._measuring = Measuring(self.sources, self.inbox, start.flops(), self._refuse, self._note)
        self._profiling = Profiling(self.sources.profile, self.inbox, self._say, self._refuse)
        self._search = self.sources.search(self.inbox.post(self._on_search))
        self._show()

    # ---- reading

    @property
    def tree(self) -> LoopTree:
        return self.history.now.tree

    @property
    def actions(self) -> list[str] | None:
        """Those that lead from the start to the tree, of dialect agent, from cursor 0 under the rules `structural`;
        None: actions do not suffice."""
        recording = self.history.now.recording
        return None if recording is None else recording.actions

    @property
    def scratch_bytes(self) -> int | None:
        """Of the tree's kernel; None: the tree has no kernel."""
        if self._scratch is None or self._scratch[0] != self.history.now.key:
            try:
                scratch = _core.kernel_scratch_bytes(self.tree.serialize())
            except JobError:
                scratch = None
            self._scratch = (self.history.now.key, scratch)
        return self._scratch[1]

    @property
    def figure(self) -> Figures:
        return self._measuring.of(self.history.now.key)

    def figure_of(self, step: Step) -> Figures:
        return self._measuring.of(step.key)

    @property
    def shares(self) -> dict[int, float]:
        """Of the time, by line of the tree; empty: there is no profile of it."""
        return self._profiling.shares

    @property
    def newest_graded(self) -> Graded | None:
        """Of the tree, else of any: it says where trees are measured."""
        known = [self.figure, *reversed(self._measuring.known())]
        return next((figure.graded for figure in known if figure.graded), None)

    @property
    def legal(self) -> list[Choice]:
        """What may be done at the cursor, and why the rest may not."""
        if self._choices is None:
            self._choices = choices(self.tree, self.cursor)
        return self._choices

    @property
    def code(self) -> str:
        """In the language of the view; "": it is on its way."""
        view = self.view if self.view in code_view.VIEWS else "c"
        return self._codes.get((self.history.now.key, view), "")

    @property
    def visible_lines(self) -> list[int]:
        return self.folds.visible_lines(self.tree)

    @property
    def best(self) -> Step | None:
        """The step with the highest graded figure."""
        graded = [step for step in self.history.steps if self.figure_of(step).graded]
        return max(graded, key=lambda step: self.figure_of(step).graded.gflops, default=None)

    @property
    def c_path(self) -> str:
        return str(self._c_file.path) if self._c_file else ""

    # ---- life

    def subscribe(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def press(self, key: str) -> None:
        """A key by Textual's name, or a character."""
        self.message, self.is_error = "", False
        if self.prompt is not None:
            self._type(key)
        elif (method := method_of(key)) is not None:
            if self.preview is not None and method not in ("enter", "leave"):
                self.preview = None
            getattr(self, method)()
        self._changed()

    def paste(self, text: str) -> None:
        """Into the question that is asked, if one is."""
        if self.prompt is not None:
            for character in " ".join(text.split()):
                self.prompt.type(character)
            self._changed()

    def pump(self, timeout: float = 0) -> bool:
        """Takes in what other threads found; waits for it so many seconds. False: there was nothing."""
        came = self.inbox.pump(timeout)
        if came:
            self._changed()
        return came

    def close(self) -> None:
        """Ends threads and jobs. No kernel runs afterwards."""
        for each in (self._measuring, self._search, self._profiling, self._code_view):
            each.close()

    def quit(self) -> None:
        self.is_over = True

    # ---- moving

    def up(self) -> None:
        self.swap_up() if self.is_dragging else self._move(-1)

    def down(self) -> None:
        self.swap_down() if self.is_dragging else self._move(1)

    def move_to(self, line: int) -> None:
        """To a visible line."""
        if line in self.visible_lines:
            self._put_cursor(line)
            self._changed()

    def _move(self, step: int) -> None:
        lines = self.visible_lines
        at = lines.index(self.cursor) + step
        if 0 <= at < len(lines):
            self._put_cursor(lines[at])

    def move_over_loops(self, step: int) -> None:
        """As the actions up and down. ScheduleError: there is no loop in that direction."""
        loop = edits.neighbour(self.tree, self.cursor, step)
        if loop is None:
            raise ScheduleError(f"there is no loop {'below' if step > 0 else 'above'}")
        self._put_cursor(loop)

    def _put_cursor(self, line: int) -> None:
        self.cursor = line
        self.folds.show(self.tree, line)
        self._choices = None
        self.is_dragging = self.is_dragging and self.tree.is_loop(line)

    def fold(self) -> None:
        if self.tree.is_loop(self.cursor):
            self.folds.toggle(self.cursor)
        else:
            self._refuse("fold: only loops have lines inside them")

    def enter(self) -> None:
        if self.preview is not None:
            self._take(self.preview)
        elif self.is_dragging or self.tree.is_loop(self.cursor):
            self.is_dragging = not self.is_dragging
        else:
            self._refuse("drag: this is an operation; loops can be dragged")

    def leave(self) -> None:
        if self.preview is not None:
            self.preview = None
        elif self.shows_help:
            self.shows_help = False
        else:
            self.is_dragging = False

    # ---- edits

    def swap_up(self) -> None:
        self._edit("swap_up", edits.swap_up)

    def swap_down(self) -> None:
        self._edit("swap_down", edits.swap_down)

    def merge(self) -> None:
        self._edit("merge", edits.merge)

    def vectorize(self) -> None:
        self._edit("vectorize", edits.annotate("vectorize"))

    def unroll(self) -> None:
        self._edit("unroll", edits.annotate("unroll"))

    def parallel(self) -> None:
        self._edit("parallel", edits.annotate("cpu_parallel"))

    def clear(self) -> None:
        self._edit("clear", edits.clear)

    def decrease_reuse(self) -> None:
        self._edit("less reuse", edits.decrease_reuse)

    def increase_reuse(self) -> None:
        self._edit("more reuse", edits.increase_reuse)

    def apply(self, name: str, edit: Edit) -> bool:
        """One more step. False: the tree stays as it is. ScheduleError: it does not admit the edit."""
        edited = edit(self.tree, self.cursor)
        # Not ==, by which trees are equal whatever their operations may share after later edits.
        if edited.tree.serialize() == self.tree.serialize():
            self._put_cursor(edited.cursor)
            return False
        recording = self.history.now.recording
        if recording is not None:
            recording = recording.then(self.tree, edited.loop, edited.action, edited.tree) if edited.action else None
        self._add(name, edited.tree, edited.cursor, recording)
        return True

    def _edit(self, name: str, edit: Edit) -> None:
        try:
            if not self.apply(name, edit):
                self._refuse(f"{name}: it changes nothing here")
        except ScheduleError as error:
            self._refuse(f"{name}: {error}")

    def undo(self) -> None:
        self._walk_history(self.history.undo, "undo: this is the start")

    def redo(self) -> None:
        self._walk_history(self.history.redo, "redo: nothing was undone")

    def _walk_history(self, step: Callable[[], bool], otherwise: str) -> None:
        before = self.tree
        self.history.leave(self.cursor)
        if not step():
            self._refuse(otherwise)
            return
        self.folds.follow(before, self.tree)
        self._put_cursor(self.history.now.cursor)
        self._show()

    def _add(self, label: str, tree: LoopTree, cursor: int, recording: Recording | None) -> None:
        before = self.tree
        self.history.leave(self.cursor)
        self.history.add(Step(label, tree, tree.tree_key, cursor, recording))
        self.folds.follow(before, tree)
        self._put_cursor(cursor)
        self._show()

    def _take(self, proposal: Proposal) -> None:
        self.preview = None
        self.adopt(proposal.origin.partition(",")[0], proposal.tree)

    def adopt(self, label: str, tree: LoopTree) -> None:
        """A tree that was made elsewhere."""
        if tree.program_key != self.start.program_key:
            self._refuse(f"{label}: that schedule is of another program, whose key is {tree.program_key}")
        elif tree == self.tree:
            self._say(f"{label}: that is the schedule as it is")
        else:
            self._add(label, tree, 0, recording_of(self.start, tree))

    # ---- questions

    def ask_split(self) -> None:
        line = self.cursor
        if not self.tree.is_loop(line):
            self._refuse("split: this is an operation; loops can be split")
            return
        self.prompt = Prompt("inner size?", self._split, lambda text: split_text(self.tree, line, text) if text else "")

    def _split(self, text: str) -> str:
        try:
            inner = whole_number(text, "the inner size")
            self.apply(f"split_{inner}", edits.split(inner))
        except ScheduleError as error:
            return str(error)
        return ""

    def ask_actions(self) -> None:
        done: list[action_line.Done] = []
        self.prompt = Prompt("actions?", lambda text: action_line.run(self, text, done), action_line.explain)

    def ask_threads(self) -> None:
        self.prompt = Prompt("threads?", self._set_threads)

    def _set_threads(self, text: str) -> str:
        try:
            threads = whole_number(text, "the number of threads")
        except ScheduleError as error:
            return str(error)
        if not 1 <= threads <= MOST_THREADS:
            return f"from 1 to {MOST_THREADS} threads, not {threads}"
        if threads != self.threads:
            if self.search is not None:
                self._search.stop()
                self.search = None
                self._say("the search is stopped: its figures are of another number of threads; B starts one")
            self.threads = threads
            self.fleet_best = None  # of the others
            self._profiling.show(self.tree, threads)
            self._measuring.forget()
            self._measuring.measure(self.tree, self.threads)
        return ""

    def ask_write(self) -> None:
        self.prompt = Prompt("write to?", self._write, text=self._schedule_path or "schedules.jsonl")

    def _write(self, path: str) -> str:
        graded = self.figure.graded
        try:
            put_schedule(path, self.tree, graded.gflops if graded else None)
        except (OSError, ScheduleError, ValueError) as error:
            return f"cannot write: {error}"
        self._schedule_path = path
        self._say(f"written to {path}")
        return ""

    def ask_open(self) -> None:
        self.prompt = Prompt("open?", self._open, text=self._schedule_path or "schedules.jsonl")

    def _open(self, path: str) -> str:
        try:
            tree = find_schedule(path, self.start.program_key)
            if tree is None:
                raise ScheduleError(f"{path} has no schedule of this program")
        except (OSError, ScheduleError, ValueError) as error:
            return f"cannot open: {error}"
        self._schedule_path = path
        self.adopt("open", tree)
        return ""

    def _type(self, key: str) -> None:
        prompt = self.prompt
        if key in ("escape", "ctrl+c"):
            self.prompt = None
        elif key != "enter":
            prompt.type(key)
        else:
            prompt.problem = prompt.submit(prompt.text)
            if not prompt.problem and self.prompt is prompt:
                self.prompt = None

    # ---- others' trees, shares and code

    def ask_fleet(self) -> None:
        tree, threads = self.tree, self.threads
        hardware_class = self.newest_graded.hardware_class if self.newest_graded else ""
        self._say("asking the fleet ...")
        key = self.history.now.key

        def on_fleet(found: list[Proposal]) -> None:
            if (self.history.now.key, self.threads) == (key, threads):  # else it answers an older question
                self._on_fleet(found)

        self.inbox.ask(lambda: self.sources.fleet(tree, threads, hardware_class), on_fleet, self._refuse)

    def _on_fleet(self, found: list[Proposal]) -> None:
        if not found:
            self._say("the fleet knows no figure of this program for these threads")
            return
        self.fleet_best = self.preview = found[0]
        self._say("")

    def toggle_search(self) -> None:
        if self.search is None:
            self._start_search()
        else:
            self._search.stop()
            self.preview = self.search.best
            if self.preview is None:
                self._say("the search found nothing that has a figure")
            self.search = None

    def _start_search(self) -> None:
        try:
            self._search.start(self.tree, self.threads)
        except CannotAsk as error:
            self._refuse(str(error))
            return
        self.search = SearchState(is_running=True)

    def _on_search(self, trees: int, seconds: float, best: Proposal | None, is_running: bool, failure: str) -> None:
        if failure:
            self._refuse(f"search: {failure}")
        if self.search is not None:  # else it was stopped meanwhile
            self.search = SearchState(is_running, trees, seconds, best)

    def ask_profile(self) -> None:
        self._profiling.ask()

    def toggle_help(self) -> None:
        self.shows_help = not self.shows_help

    def next_view(self) -> None:
        views = (("schedule",) if self.is_narrow else ()) + code_view.VIEWS
        self.view = views[(views.index(self.view) + 1) % len(views)]
        self._ask_code()

    def set_narrow(self, is_narrow: bool) -> None:
        """Of a narrow screen the schedule is one view of several."""
        if is_narrow != self.is_narrow:
            self.is_narrow = is_narrow
            self.view = "schedule" if is_narrow else "c"
            self._changed()

    def _ask_code(self) -> None:
        if self.view in code_view.VIEWS and not self.code:
            self._code_view.ask(self.tree, self.view)

    def _on_code(self, key: str, view: str, text: str) -> None:
        if key == self.history.now.key:
            self._codes[key, view] = text

    # ---- each new tree

    def _show(self) -> None:
        self._profiling.show(self.tree, self.threads)
        self._write_c()
        if self._on_tree is not None:
            self._on_tree(self.tree)
        self._ask_code()
        self._measuring.measure(self.tree, self.threads)

    def _write_c(self) -> None:
        text = code_view.c_text(self.tree)
        self._codes = {(self.history.now.key, "c"): text}
        try:
            if self._c_file is not None:
                self._c_file.write(text)
        except OSError as error:
            self._refuse(f"the C file: {error}")

    # ---- telling

    def _say(self, message: str) -> None:
        self.message, self.is_error = message, False

    def _refuse(self, message: str) -> None:
        self.message, self.is_error = message, True

    def _note(self, problem: str) -> None:
        """Of something that was not asked for: it takes no other message's place."""
        if not self.message:
            self._refuse(problem)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
