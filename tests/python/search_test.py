"""Searches from Python: the strategies of C++, measured through a client, and callables in their place."""

import random
from dataclasses import dataclass, replace

import pytest

import loopfleet
from loopfleet import _core

BENCHMARK = "benchmark://mm-v0/mm32_32_32"


def test_a_search_improves_on_the_untuned_schedule(client):
    found = loopfleet.search("mm-v0/mm32_32_32", evaluations=60, seed=3, client=client)
    assert found.evaluations == 60 and found.flop_count > 0
    assert found.confirmed_ns > 0 and found.speed_up > 1
    assert client.evaluate(BENCHMARK, found.actions).ok
    assert found.curve[-1].best_ns <= found.best_ns
    assert [point.best_ns for point in found.curve] == sorted((point.best_ns for point in found.curve), reverse=True)
    assert "multiply" in found.loop_tree


@dataclass
class Figure:
    elapsed_ns: float
    code_hash: str
    ok: bool = True
    grade: str = "B"
    flop_count: int = 1000
    hardware_class: str = "cpu"


class LyingFleet:
    """Its first figure of one schedule is a tenth of the truth."""

    LIE = ["split_4"]

    def __init__(self):
        self.confirmed = []

    def evaluate_many(self, jobs):
        return [self._figure(job["actions"], job.get("fresh", False)) for job in jobs]

    def _figure(self, actions, is_fresh):
        if is_fresh:
            self.confirmed.append(actions)
        truth = 1000 - sum(int(name.split("_")[1]) for name in actions)
        return Figure(truth / 10 if actions == self.LIE and not is_fresh else truth, code_hash=",".join(actions))


def test_a_figure_that_was_too_good_does_not_win():
    fleet = LyingFleet()
    found = loopfleet.search(BENCHMARK, lambda most, results: [["split_2"], ["split_4"], ["split_8"], ["split_16"]] if results else [],
                             evaluations=5, client=fleet)
    assert fleet.confirmed == [[], ["split_4"], ["split_16"], ["split_8"]] * 3, "in turns, the quickest first"
    assert (found.actions, found.best_ns, found.confirmed_ns, found.untuned_ns) == (["split_16"], 984, 984, 1000)
    assert found.loop_tree == str(loopfleet.jobs.make_job({"benchmark": BENCHMARK, "actions": ["split_16"]}).tree)
    assert found.curve[-1].best_ns == 99.6 and (found.evaluations, found.confirmations) == (5, 12)
    alone = loopfleet.search(BENCHMARK, lambda most, results: [["split_4"]] if len(results) == 1 else [], evaluations=5,
                             client=LyingFleet(), confirm=False)
    assert (alone.actions, alone.best_ns, alone.confirmed_ns, alone.confirmations) == (["split_4"], 99.6, None, 0)


class LoudFleet(LyingFleet):
    """No new figure has grade A or B."""

    def _figure(self, actions, is_fresh):
        figure = super()._figure(actions, is_fresh)
        return replace(figure, grade="C") if is_fresh else figure


def test_a_confirmation_that_a_neighbour_disturbed_says_so():
    def strategy(most, results):
        return [["split_4"]] if len(results) == 1 else []

    for fleet, disturbed in ((LyingFleet(), False), (LoudFleet(), True)):
        assert loopfleet.search(BENCHMARK, strategy, evaluations=5, client=fleet).disturbed == disturbed


def test_a_watcher_is_told_of_each_batch_and_may_end_the_search(client):
    seen = []

    def watch(progress):
        seen.append(progress)
        return len(seen) < 3

    # The untuned schedule alone is the first batch; the next ones are small, until the pace is known.
    found = loopfleet.search(BENCHMARK, seconds=600, in_flight=8, client=client, confirm=False, watch=watch)
    assert [progress.evaluations for progress in seen] == [1, 5, 13] and found.evaluations == 13
    assert seen[-1].best_ns == found.best_ns and seen[-1].best_actions == found.actions
    assert seen[-1].flop_count == found.flop_count > 0 and 0 < seen[0].seconds <= seen[-1].seconds


def test_a_watcher_that_says_nothing_ends_nothing(client):
    seen = []
    found = loopfleet.search(BENCHMARK, evaluations=9, in_flight=4, client=client, confirm=False, watch=seen.append)
    assert found.evaluations == 9 and len(seen) == 3


def test_a_search_without_any_figure_says_why(client):
    for benchmark in (BENCHMARK, PROGRAM):
        found = loopfleet.search(benchmark, evaluations=1, client=client, labels=["absent"], deadline_s=0.2)
        assert found.failure.startswith("EXPIRED: ") and found.without_figure == 1, found
    assert loopfleet.search(BENCHMARK, evaluations=1, client=client).failure is None


def simulate(searcher, figure, evaluations):
    """Without a fleet: what was asked for, in order."""
    asked = []
    while len(asked) < evaluations and (batch := searcher.ask(min(16, evaluations - len(asked)))):
        searcher.tell([number for number, _ in batch], [figure(actions) for _, actions in batch], 0.0)
        asked += [actions for _, actions in batch]
    return asked


@pytest.mark.parametrize("strategy", [name for name, _ in _core.strategies()])
def test_the_same_seed_asks_for_the_same(strategy):
    def trace():
        return simulate(_core.Searcher(BENCHMARK, strategy=strategy, seed=5), lambda actions: 100 + len(actions), 80)

    assert trace() == trace() and len(trace()) > 40


def test_a_callable_can_be_the_strategy():
    told = []

    def splits(most, results):
        told.extend(results)
        return [[f"split_{2 + len(told)}"]] if results and len(told) < 10 else []

    searcher = _core.Searcher(BENCHMARK, strategy=splits)
    asked = simulate(searcher, lambda actions: None if actions == ["split_5"] else 100.0 - len(told), 100)
    assert asked[:3] == [[], ["split_3"], ["split_4"]] and len(asked) == 10
    assert told[0] == ([], 100.0) and (["split_5"], None) in told
    assert searcher.without_figure == 1 and searcher.best_actions == asked[-1]


def test_a_strategy_may_not_return_more_than_it_was_asked_for(client):
    with pytest.raises(ValueError, match="asked for at most 9 lists of actions and returned 1000"):
        loopfleet.search(BENCHMARK, lambda most, results: [["down"] * length for length in range(1000)], evaluations=10,
                         client=client)


def test_a_strategy_is_not_told_of_what_a_scorer_passed_over():
    told, proposed = [], [["split_2"], ["split_4"], ["split_8"], ["split_16"]]

    def strategy(most, results):
        told.extend(results)
        return proposed if len(told) == 1 else []

    searcher = _core.Searcher(BENCHMARK, strategy=strategy, scorer=lambda many: [0, 1, 2, 3])
    for most in (1, 2, 2):
        batch = searcher.ask(most)
        searcher.tell([number for number, _ in batch], [100.0] * len(batch), 0.0)
    searcher.ask(1)
    assert told == [([], 100.0), (["split_2"], 100.0), (["split_4"], 100.0)]


STORED = "benchmark://mm-v0/mm24_40_32"


@pytest.mark.parametrize("strategy", ["genetic", "mcts"])
def test_a_database_repeats_the_search_that_filled_it(client, cluster, strategy):
    def found(**where):
        return loopfleet.search(STORED, strategy, evaluations=40, seed=7, in_flight=8, **where)

    live = found(client=client, confirm=False)
    again = found(database=cluster.database)
    assert [(point.evaluations, point.best_ns) for point in again.curve] == \
        [(point.evaluations, point.best_ns) for point in live.curve]
    assert (again.actions, again.best_ns, again.untuned_ns, again.evaluations, again.without_figure, again.flop_count) == \
        (live.actions, live.best_ns, live.untuned_ns, live.evaluations, live.without_figure, live.flop_count)
    assert (again.confirmed_ns, again.confirmations) == (None, 0)


class TwoSchedules:
    """A start model, and a scorer model that is told what there is."""

    def __init__(self):
        self.learned = []

    def start_for(self, benchmark, ir):
        return [["split_4"], ["split_8"]]

    def scorer_for(self, benchmark, ir):
        return self

    def __call__(self, many):
        return [len(actions) for actions in many]

    def learn(self, many, figures):
        self.learned += zip(many, figures)


def test_a_database_answers_callables_and_models(client, cluster):
    benchmark, model, told = "mm-v0/mm16_24_24", TwoSchedules(), []
    measured = client.evaluate_many([(benchmark, actions) for actions in ([], ["split_4"])])

    def strategy(most, results):
        told.extend(results)
        return [["split_2"]] if results and len(told) == 3 else []

    found = loopfleet.search(benchmark, strategy, evaluations=20, start=model, scorer=model, database=str(cluster.database))
    figures = [([], measured[0].elapsed_ns), (["split_4"], measured[1].elapsed_ns), (["split_8"], None), (["split_2"], None)]
    assert told == model.learned == figures
    assert (found.evaluations, found.without_figure, found.untuned_ns) == (4, 2, measured[0].elapsed_ns)


def test_a_database_that_knows_nothing_says_so(cluster, client, tmp_path):
    nothing = loopfleet.search("mm-v0/mm8_8_24", evaluations=5, database=cluster.database)
    assert nothing.best_ns is None and nothing.without_figure == 5
    assert nothing.failure == "NOT_FOUND: the database has no figure of this tree"
    with pytest.raises(loopfleet.LoopfleetError, match="absent.db"):
        loopfleet.search(BENCHMARK, evaluations=5, database=tmp_path / "absent.db")
    with pytest.raises(ValueError, match="either client or database"):
        loopfleet.search(BENCHMARK, evaluations=5, database=cluster.database, client=client)
    with pytest.raises(ValueError, match="'threads' cannot be given with database"):
        loopfleet.search(BENCHMARK, evaluations=5, database=cluster.database, threads=2)
    with pytest.raises(ValueError, match="is for loops"):
        loopfleet.search(PROGRAM, evaluations=5, database=cluster.database)


PROGRAM = "benchmark://small-v0/qsort"


def test_a_search_over_passes_leaves_few_instructions(client):
    found = loopfleet.search("small-v0/qsort", strategy="beam", evaluations=260, client=client)
    assert found.benchmark == PROGRAM and found.evaluations == 260
    assert 0 < found.instructions < found.start_instructions and found.oz_ratio == found.oz_instructions / found.instructions
    assert found.curve[-1][2] == found.instructions and found.curve[0][2] == found.start_instructions
    outcome = client.evaluate_many([{"benchmark": PROGRAM, "passes": found.passes, "observe": ["IrInstructionCount"]}]).outcomes[0]
    assert outcome.observed["IrInstructionCount"] == found.instructions
    started = loopfleet.search(PROGRAM, "random", evaluations=5, start=[",".join(found.passes)], client=client)
    assert started.instructions <= found.instructions


def test_auto_is_what_the_records_say():
    def trace(strategy):
        return simulate(_core.Searcher(BENCHMARK, strategy=strategy, seed=5), lambda actions: 100 + len(actions), 80)

    assert trace("auto") == trace("genetic") != trace("hill_climbing")


@pytest.mark.parametrize("strategy", ["beam", "genetic", "hill_climbing", "mcts"])
def test_searches_over_passes_repeat_and_know_no_tree(strategy):
    def trace():
        searcher = _core.Searcher(PROGRAM, strategy=strategy, seed=5)
        return simulate(searcher, lambda passes: 1000.0 - 10 * passes.count("-mem2reg"), 300), searcher

    (asked, searcher), (again, _) = trace(), trace()
    assert asked == again and asked[0] == [] and len({tuple(passes) for passes in asked}) == len(asked)
    assert searcher.best_tree is None and "-mem2reg" in searcher.best_actions


def test_bad_searches_over_passes_name_what_is_valid():
    with pytest.raises(ValueError, match="for loops"):
        _core.Searcher(PROGRAM, strategy="guided")
    with pytest.raises(ValueError, match="nearest: -mem2reg"):
        _core.Searcher(PROGRAM, start=[["-mem2rg"]])
    with pytest.raises(ValueError, match="nearest: qsort"):
        _core.Searcher("benchmark://small-v0/qsrt")


def test_a_callable_can_be_the_scorer():
    def shares_of_swaps(scorer):
        asked = simulate(_core.Searcher(BENCHMARK, strategy="random", seed=1, scorer=scorer), lambda _: 1.0, 100)
        return sum("swap_down" in actions for actions in asked)

    assert shares_of_swaps(lambda many: [-actions.count("swap_down") for actions in many]) > \
        1.3 * shares_of_swaps(lambda many: [random.random() for _ in many])


def test_bad_arguments_name_what_is_valid(client):
    with pytest.raises(ValueError, match="nearest: genetic"):
        loopfleet.search(BENCHMARK, "genetics", seconds=1, client=client)
    with pytest.raises(ValueError, match="either seconds or evaluations"):
        loopfleet.search(BENCHMARK, client=client)
    with pytest.raises(ValueError, match="evaluations must be at least 1, not 0"):
        loopfleet.search(BENCHMARK, evaluations=0, client=client)
    with pytest.raises(ValueError, match="seconds must be more than 0, not -1"):
        loopfleet.search(BENCHMARK, seconds=-1, client=client)
    with pytest.raises(ValueError, match="seed must be from 0 to 2.64 - 1, not -1"):
        loopfleet.search(BENCHMARK, seconds=1, seed=-1, client=client)
    for field in ({"rules": "loop_nest"}, {"actions": ["split_4"]}, {"on_illegal": "skip"}, {"merge_all_first": True}):
        with pytest.raises(ValueError, match=f"'{next(iter(field))}' cannot be given: the search chooses it"):
            loopfleet.search(BENCHMARK, seconds=1, client=client, **field)
    for wrong in (None, ["down"], [3]):
        with pytest.raises(TypeError, match="must return lists of actions"):
            simulate(_core.Searcher(BENCHMARK, strategy=lambda most, results: wrong), lambda _: 1.0, 20)
    with pytest.raises(TypeError, match="must return a list of numbers"):
        simulate(_core.Searcher(BENCHMARK, strategy="random", scorer=lambda many: ["a"] * len(many)), lambda _: 1.0, 20)
    for benchmark in (BENCHMARK, PROGRAM):
        with pytest.raises(loopfleet.JobError, match="nearest: threads"):
            loopfleet.search(benchmark, seconds=60, client=client, thread=2)
    with pytest.raises(ValueError, match="mm-v0"):
        loopfleet.search("benchmark://mm-v9/mm8_8_8", seconds=1, client=client)
    with pytest.raises(ValueError, match="one number for each"):
        simulate(_core.Searcher(BENCHMARK, strategy="random", scorer=lambda many: [1.0]), lambda _: 1.0, 20)
    with pytest.raises(ValueError, match="split_4"):
        simulate(_core.Searcher(BENCHMARK, strategy=lambda most, results: [["splt_4"]]), lambda _: 1.0, 20)
