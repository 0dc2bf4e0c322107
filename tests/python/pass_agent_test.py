"""PassAgent of loopfleet.models: graphs of programs as numbers, GATv2, what an update teaches, the agent's file, and
episodes over a made-up fleet and over a real cluster."""

import json
import math
import subprocess
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest
from learning_packages import learning_package
from model_files import read_parts, write_parts

from loopfleet import ClientClosed, CoordinatorUnavailable, models
from loopfleet.models import (BadModelFile, ModelError, PassAgent, PassRollouts, PassState, PassTrajectory, Vocabulary,
                              train_pass_agent)
from loopfleet.models.program_graph import MOST_POSITION, SELF_LOOP, join_graphs
from loopfleet.pass_failures import PASS_FAILURES
from loopfleet.programl import ProgramlColumns

QSORT = "benchmark://small-v0/qsort"
ACTIONS = ["-dce", "-gvn", "-licm", "-mem2reg", "-sroa"]


def made_up_graph(texts, seed, nodes=9, edges=20):
    rng = np.random.default_rng(seed)
    return ProgramlColumns(
        texts, rng.integers(0, 3, nodes).astype(np.uint8), rng.integers(0, len(texts), nodes).astype("<u2"),
        np.zeros(nodes, "<u4"), np.zeros(nodes, "<u4"), rng.integers(0, 3, edges).astype(np.uint8),
        rng.choice([0, 1, 7, 9_999], edges).astype("<u4"), rng.integers(0, nodes, edges).astype("<u4"),
        rng.integers(0, nodes, edges).astype("<u4"))


GRAPHS = [made_up_graph(["add", "ret", "i32"], 1), made_up_graph(["i32", "br", "add"], 2, nodes=5, edges=4),
          made_up_graph(["ret", "load"], 3, nodes=2, edges=0)]


def make_agent(**options):
    learning_package("torch")
    return PassAgent(Vocabulary.of(GRAPHS), ACTIONS, **options)


def state_of(graph=None, seed=0):
    return PassState(np.random.default_rng(seed).random(PassState.width(len(ACTIONS)), np.float32), graph)


def states_of(vocabulary):
    return [state_of(), *(state_of(vocabulary.encode(graph), seed) for seed, graph in enumerate(GRAPHS))]


# ---- graphs


def test_a_vocabulary_has_the_texts_of_two_graphs():
    vocabulary = Vocabulary.of(GRAPHS)
    assert vocabulary.texts == ["add", "i32", "ret"] and len(vocabulary) == 4
    assert Vocabulary.of(GRAPHS[:1]).texts == ["add", "i32", "ret"], "all texts of a graph alone"
    assert Vocabulary.of([]).texts == []
    encoded = vocabulary.encode(GRAPHS[1])
    number = {"i32": 2, "br": 0, "add": 1}
    assert encoded.text.tolist() == [number[GRAPHS[1].texts[place]] for place in GRAPHS[1].node_text]
    assert encoded.type.tolist() == GRAPHS[1].node_type.tolist()
    with pytest.raises(ValueError, match="each text once"):
        Vocabulary(["add", "add"])


def test_edges_name_their_flow_and_position():
    for graph in GRAPHS:
        encoded = Vocabulary([]).encode(graph)
        assert encoded.flow[encoded.kind].tolist() == graph.edge_flow.tolist()
        assert encoded.position[encoded.kind].tolist() == np.minimum(graph.edge_position, MOST_POSITION).tolist()
        pairs = list(zip(encoded.flow, encoded.position))
        assert len(set(pairs)) == len(pairs) and pairs[-1] == (SELF_LOOP, 0) and len(pairs) - 1 not in encoded.kind


def test_joined_graphs_have_no_edges_between_them():
    encoded = [Vocabulary.of(GRAPHS).encode(graph) for graph in GRAPHS]
    joined, owner = join_graphs(encoded)
    assert owner.tolist() == [0] * 9 + [1] * 5 + [2] * 2 and (owner[joined.source] == owner[joined.target]).all()
    given = sum(len(graph.kind) for graph in encoded)
    first = np.repeat([0, 9, 14], [len(graph.kind) for graph in encoded])
    assert (joined.source[:given] == np.concatenate([graph.source for graph in encoded]) + first).all()
    assert (joined.target[:given] == np.concatenate([graph.target for graph in encoded]) + first).all()
    assert joined.source[given:].tolist() == joined.target[given:].tolist() == list(range(16))
    flows = np.concatenate([graph.flow[graph.kind] for graph in encoded])
    assert joined.flow[joined.kind].tolist() == [*flows, *[SELF_LOOP] * 16]
    with pytest.raises(ValueError):
        join_graphs([])


# ---- networks


def test_gatv2_is_its_formula():
    torch = learning_package("torch")
    from loopfleet.models.gatv2 import GATv2
    torch.manual_seed(2)
    layer = GATv2(width=6, out=4, heads=2, edge_width=3)
    nodes, kinds = torch.randn(5, 6), torch.randn(3, 3)
    kind, source, target = torch.tensor([0, 2, 1, 0]), torch.tensor([0, 1, 2, 4]), torch.tensor([3, 3, 3, 1])
    found = layer(nodes, kinds, kind, source, target)
    for node in range(5):
        into = [place for place in range(4) if target[place] == node]
        expected = layer.skip(nodes[node]).view(2, 4)
        if into:
            values = torch.stack([layer.from_source(nodes[source[e]]).view(2, 4) for e in into])
            scores = torch.stack([(torch.nn.functional.leaky_relu(
                layer.from_source(nodes[source[e]]) + layer.from_target(nodes[node]) + layer.from_edge(kinds[kind[e]]),
                0.2).view(2, 4) * layer.score).sum(1) for e in into])
            expected = expected + (torch.softmax(scores, 0).unsqueeze(2) * values).sum(0)
        torch.testing.assert_close(found[node].view(2, 4), expected)


def test_states_in_a_batch_are_read_as_if_alone():
    torch = learning_package("torch")
    from loopfleet.models.state_encoder import StateEncoder
    torch.manual_seed(4)
    vocabulary = Vocabulary.of(GRAPHS)
    encoder = StateEncoder(len(vocabulary), PassState.width(len(ACTIONS)))
    states = states_of(vocabulary)
    together = encoder(states)
    assert together.shape == (4, StateEncoder.WIDTH)
    torch.testing.assert_close(together, torch.cat([encoder([state]) for state in states]), rtol=1e-4, atol=1e-5)
    graphs = encoder.read([state.graph for state in states[1:]])
    torch.testing.assert_close(graphs, together[1:, :graphs.shape[1]], rtol=1e-4, atol=1e-5)
    assert (graphs[0] - graphs[1]).abs().max() > 1e-3
    assert (together[0, :graphs.shape[1]] == encoder.no_graph).all(), "what it has learned to see without a graph"


# ---- learning


def test_rewards_and_advantages_are_those_of_their_formulas():
    episode = PassTrajectory("x", passes=[0, 1, 2], sizes=[100, 50, 60], values=[0.5, 0.25, -1.0], broke=True)
    rewards = [math.log(2), math.log(5 / 6), 0.0]
    assert episode.rewards() == pytest.approx(rewards)
    errors = [rewards[0] + 0.9 * 0.25 - 0.5, rewards[1] + 0.9 * -1.0 - 0.25, rewards[2] + 1.0]
    last = errors[2]
    middle = errors[1] + 0.9 * 0.8 * last
    assert episode.best() == ([0], 50)
    assert PassTrajectory("x", passes=[0, 1], sizes=[9, 9, 9]).best() == ([], 9), "the first of equal states"
    assert episode.advantages(0.9, 0.8) == pytest.approx([errors[0] + 0.9 * 0.8 * middle, middle, last])


@pytest.mark.parametrize("shared", [True, False])
def test_an_update_makes_what_paid_likelier(shared, tmp_path):
    agent = make_agent(shared=shared, rate=1e-2, epochs=4, seed=3)
    states, paying = states_of(agent.vocabulary), 3
    chance = agent.probabilities(states)[:, paying]
    for _ in range(3):
        episodes = []
        for _ in range(8):
            for state, action, log, value in zip(states, *agent.draw(states)):
                episodes.append(PassTrajectory("x", passes=[int(action)], states=[state, state],
                                               sizes=[100, 50 if action == paying else 100],
                                               log_probabilities=[float(log)], values=[float(value)]))
        assert 0 < agent.update(episodes) <= math.log(len(ACTIONS)) + 1e-6
    assert (agent.probabilities(states)[:, paying] > 1.5 * chance).all()
    agent.save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz") as file:
        critics = {name for name in file.files if name.startswith("critic_encoder.")}
        encoders = {name for name in file.files if name.startswith("encoder.")}
        assert len(critics) == (0 if shared else len(encoders)) and encoders
        differ = [not np.array_equal(file[name], file[name.removeprefix("critic_")]) for name in critics]
    assert sum(differ) > len(differ) / 2 or shared
    with pytest.raises(ModelError, match="no passes"):
        agent.update([PassTrajectory("x", states=[states[0]])])


def test_the_same_seed_gives_the_same_agent_and_the_same_draws():
    torch = learning_package("torch")
    before = torch.get_rng_state()
    agents = [make_agent(seed=seed) for seed in (5, 5, 6)]
    states = states_of(agents[0].vocabulary) * 20
    first, again, other = ([column.tolist() for column in agent.draw(states)] for agent in agents)
    assert first == again and first[0] != other[0]
    assert first[0] != agents[0].draw(states)[0].tolist()
    for agent in agents[:2]:
        agent.reseed(9)
    assert agents[0].draw(states)[0].tolist() == agents[1].draw(states)[0].tolist()
    assert torch.equal(before, torch.get_rng_state()), "others' random numbers are left alone"
    with pytest.raises(ModelError, match="at least one action"):
        PassAgent(Vocabulary([]), [])
    for options in ({"epochs": 0}, {"minibatch": 0}):
        with pytest.raises(ModelError, match="epochs and minibatch must be at least 1"):
            make_agent(**options)
    assert len(PassAgent(Vocabulary([])).actions) == 118


# ---- files and packages


def test_an_agent_is_kept_in_a_file(tmp_path):
    path = tmp_path / "agent.npz"
    for shared in (True, False):
        agent = make_agent(shared=shared)
        agent.notes["curve"] = [{"steps": 600, "return": 0.5}]
        agent.save(path)
        again = PassAgent.load(path, rate=1e-4, seed=2)
        assert (again.actions, again.shared, again.notes) == (ACTIONS, shared, agent.notes)
        assert again.vocabulary.texts == agent.vocabulary.texts
        chances = again.probabilities(states_of(agent.vocabulary))
        assert (chances == agent.probabilities(states_of(again.vocabulary))).all()
        assert chances.sum(1) == pytest.approx(1.0)
    with pytest.raises(BadModelFile, match="holds a PassAgent, not a PPO"):
        models.PPO.load(path)


@pytest.mark.parametrize("make", [make_agent, lambda: models.PPO(3, ACTIONS), lambda: models.DQN(3, ACTIONS)])
def test_a_wrong_option_is_not_the_files_fault(make, tmp_path):
    learning_package("torch")
    agent, path = make(), tmp_path / "agent.npz"
    agent.save(path)
    with pytest.raises(TypeError, match="rat"):
        type(agent).load(path, rat=1e-4)
    facts, arrays = read_parts(path)
    for changed in ({"actions": []}, {"actions": 7}, *([{"features": -1}] if "features" in facts else [])):
        write_parts(path, {**facts, **changed}, arrays)
        with pytest.raises(BadModelFile, match="damaged"):
            type(agent).load(path)


def test_damaged_agents_are_refused(tmp_path):
    make_agent().save(tmp_path / "agent.npz")
    whole = (tmp_path / "agent.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[:len(whole) // 2])
    with pytest.raises(BadModelFile, match="half.npz"):
        PassAgent.load(tmp_path / "half.npz")
    rng = np.random.default_rng(1)
    for at in rng.integers(0, len(whole), 150):
        flipped = bytes([whole[at] ^ 1 << int(rng.integers(8))])
        (tmp_path / "flipped.npz").write_bytes(whole[:at] + flipped + whole[at + 1:])
        try:
            PassAgent.load(tmp_path / "flipped.npz")  # as it was: the archive does not check all of its own headers
        except BadModelFile:
            pass
    facts, arrays = read_parts(tmp_path / "agent.npz")

    def refused(match, facts=facts, **changed):
        write_parts(tmp_path / "bad.npz", facts, {**arrays, **changed})
        with pytest.raises(BadModelFile, match=match):
            PassAgent.load(tmp_path / "bad.npz")

    refused("(?s)damaged.*each text once", {**facts, "texts": ["add", "add"]})
    refused("(?s)damaged.*size mismatch", {**facts, "texts": ["add"]})
    refused("(?s)damaged.*size mismatch", {**facts, "actions": ACTIONS[1:]})
    refused("(?s)damaged.*Missing key", {**facts, "shared": False})
    refused("(?s)damaged.*notes", {name: value for name, value in facts.items() if name != "notes"})
    refused("damaged", {**facts, "texts": 7})
    refused("(?s)damaged.*size mismatch", **{"actor.bias": arrays["actor.bias"][1:]})
    refused("damaged", **{"actor.bias": arrays["actor.bias"].astype(str)})
    refused("(?s)damaged.*Unexpected key", **{"actor.more": arrays["actor.bias"]})
    refused("format 99", {**facts, "format": 99})


def test_torch_is_needed_to_make_an_agent_only(monkeypatch):
    said = subprocess.run([sys.executable, "-c", "import sys; sys.modules['torch'] = None\n"
                           "from loopfleet.models import *\n"
                           "print(PassAgent.__name__, len(Vocabulary(['add'])), PassTrajectory('x').rewards())"],
                          capture_output=True, text=True, check=True).stdout
    assert said.split() == ["PassAgent", "2", "[]"]
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "loopfleet.models.gatv2", raising=False)
    with pytest.raises(models.MissingPackage, match=r"torch is not installed: pip install '\.\[models,torch\]' in"):
        PassAgent(Vocabulary([]))
    with pytest.raises(models.MissingPackage, match="models,torch"):
        import loopfleet.models.gatv2  # noqa: F401


# ---- episodes


class MadeUpFleet:
    """Answers every job at once: -mem2reg halves the instructions, -licm fails with ``failure``, and any graph is too
    large."""

    def __init__(self, failure="COMPILE_ERROR"):
        self.jobs, self.failure, self.is_closed = [], failure, False

    def submit_jobs(self, jobs):
        if self.is_closed:
            raise ClientClosed("the client is closed")
        self.jobs += jobs
        futures = [Future() for _ in jobs]
        for future, job in zip(futures, jobs):
            self.answer(future, job)
        return futures

    def answer(self, future, job):
        passes = job["passes"]
        if job["benchmark"] == "unreachable":
            return future.set_exception(CoordinatorUnavailable("no answer"))
        count = np.zeros(70, np.int64)
        count[0] = 800 >> passes.count("-mem2reg")
        observed = {"InstCount": count.tolist()}
        if "Programl" in job["observe"]:
            observed["Programl"] = {"sha256": "0" * 64, "bytes": 1 << 30}
        status = self.failure if "-licm" in passes else "NOT_FOUND" if job["benchmark"] == "missing" else "ok"
        future.set_result(SimpleNamespace(ok=status == "ok", status=status, message="no such program",
                                          observed=observed))


class LateFleet(MadeUpFleet):
    """Answers jobs on the program "slow" when ``late`` others were submitted after them, or more than four wait."""

    def __init__(self, late):
        super().__init__()
        self.late, self.waiting = late, []

    def answer(self, future, job):
        if job["benchmark"] == "slow":
            self.waiting.append((len(self.jobs), future, job))
        else:
            super().answer(future, job)
        self.answer_late_jobs()

    def answer_late_jobs(self):
        while self.waiting and (len(self.jobs) - self.waiting[0][0] >= self.late or len(self.waiting) > 4):
            super().answer(*self.waiting.pop(0)[1:])


@pytest.mark.parametrize("failure", PASS_FAILURES)
def test_an_episode_ends_after_its_steps_or_with_a_pass_that_fails(failure):
    agent, fleet = make_agent(), MadeUpFleet(failure)
    rollouts = PassRollouts(fleet, agent, episode_steps=4)
    begun = [rollouts.begin("x", begun_with=7) for _ in range(40)]
    ended = []
    while rollouts.under_way:
        ended += rollouts.step(most=16)
    assert sorted(map(id, ended)) == sorted(map(id, begun)) and {episode.begun_with for episode in ended} == {7}
    licm = ACTIONS.index("-licm")
    assert 0 < sum(episode.broke for episode in ended) < 40
    for episode in ended:
        assert episode.broke == (licm in episode.passes) == (episode.passes[-1] == licm)
        assert len(episode.passes) == 4 or episode.broke
        assert len(episode.sizes) == len(episode.states) == len(episode.passes) + (not episode.broke)
        assert len(episode.log_probabilities) == len(episode.values) == len(episode.rewards()) == len(episode.passes)
        assert episode.sizes[-1] == 800 >> episode.passes.count(ACTIONS.index("-mem2reg"))
        assert episode.saw_graphs == 0 and not episode.with_graph, "the graph was too large"
    observed = [job["observe"] for job in fleet.jobs]
    assert observed == [["InstCount", "Programl"]] * 40 + [["InstCount"]] * (len(observed) - 40)


@pytest.mark.parametrize(("wrong", "error"), [("missing", ModelError), ("unreachable", CoordinatorUnavailable)])
def test_an_error_leaves_the_other_episodes_under_way(wrong, error):
    rollouts = PassRollouts(MadeUpFleet(), make_agent(), episode_steps=2)
    fine = [rollouts.begin("x") for _ in range(5)]
    rollouts.step()
    begun = rollouts.begin(wrong), rollouts.begin("y"), rollouts.begin(wrong)
    fine.append(begun[1])
    ended, errors = [], 0
    while rollouts.under_way:
        try:
            ended += rollouts.step()
        except error:
            errors += 1
            assert rollouts.under_way + len(ended) == 8 - errors
    assert errors == 2, "one for each episode that failed"
    assert sorted(map(id, ended)) == sorted(map(id, fine))
    assert all(episode.broke or len(episode.sizes) == 3 for episode in fine)


def test_jobs_that_cannot_be_sent_are_not_waited_for():
    fleet, agent = MadeUpFleet(), make_agent()
    rollouts = PassRollouts(fleet, agent, episode_steps=2)
    rollouts.begin("x")
    fleet.is_closed = True
    with pytest.raises(ClientClosed):
        rollouts.begin("x")
    assert rollouts.under_way == 1
    with pytest.raises(ClientClosed):
        rollouts.step()
    assert rollouts.under_way == 0
    rollouts.abandon()
    with pytest.raises(ClientClosed):
        train_pass_agent(agent, fleet, ["x"], 9)


def test_a_slow_episode_holds_up_no_other():
    fleet = LateFleet(late=1_000_000)
    rollouts = PassRollouts(fleet, make_agent(), episode_steps=4)
    slow = rollouts.begin("slow")
    others = [rollouts.begin("x") for _ in range(6)]
    ended = []
    while len(ended) < len(others):
        ended += rollouts.step()
    assert sorted(map(id, ended)) == sorted(map(id, others)) and rollouts.under_way == 1 and slow.sizes == []
    fleet.late = 0
    ended = []
    rollouts.begin("x")
    while rollouts.under_way:
        ended += rollouts.step()
    assert slow in ended and len(slow.sizes) > 1


def test_what_goes_wrong_with_episodes_is_said():
    agent = make_agent()
    rollouts = PassRollouts(MadeUpFleet(), agent)
    with pytest.raises(ModelError, match="no episode is under way"):
        rollouts.step()
    rollouts.begin("missing")
    with pytest.raises(ModelError, match="missing: NOT_FOUND: no such program"):
        rollouts.step()
    rollouts.begin("x")
    rollouts.abandon()
    assert rollouts.under_way == 0
    with pytest.raises(ModelError, match="at least one pass, not 0"):
        PassRollouts(MadeUpFleet(), agent, episode_steps=0)
    for wrong, match in (({"programs": []}, "a list of programs"), ({"programs": "x"}, "a list of programs"),
                         ({"batch": 0}, "at least 1, not 9, 24 and 0"), ({"most_lag": -1}, "at least 0, not -1")):
        with pytest.raises(ModelError, match=match):
            train_pass_agent(agent, MadeUpFleet(), **{"programs": ["x"], "steps": 9, **wrong})


def test_training_learns_from_episodes_as_they_end():
    agent, updates = make_agent(rate=3e-3, seed=2), []
    train_pass_agent(agent, MadeUpFleet(), ["x", "y"], 1_500, episode_steps=4, width=8, batch=120,
                     on_update=updates.append)
    assert [update.updates for update in updates] == list(range(1, len(updates) + 1))
    assert updates[-1].steps == sum(len(each.passes) for update in updates for each in update.episodes) >= 1_500
    assert {each.benchmark for each in updates[0].episodes} == {"x", "y"}
    facts = [update.facts() for update in updates]
    assert json.loads(json.dumps(facts)) == facts
    assert facts[0]["broke"] > 0
    assert facts[-1]["return"] > facts[0]["return"] + 0.3 and facts[-1]["entropy"] < facts[0]["entropy"]
    train_pass_agent(agent, MadeUpFleet(), ["x"], 1_000, seconds=0.0, on_update=lambda update: pytest.fail("no time"))


@pytest.mark.parametrize("most_lag", [0, 3, 1_000])
def test_training_leaves_out_what_began_long_ago(most_lag):
    fleet, updates = LateFleet(late=60), []

    def on_update(update):
        updates.append(update)
        if update.steps >= 1_000:  # the last one
            fleet.late = 0
            fleet.answer_late_jobs()

    train_pass_agent(make_agent(seed=2), fleet, ["x"] * 7 + ["slow"], 1_000, episode_steps=4, width=8, batch=40,
                     most_lag=most_lag, on_update=on_update)
    lags = [update.updates - 1 - each.begun_with for update in updates for each in update.episodes]
    assert all(update.facts()["lag"] >= 0 for update in updates) and min(lags) == 0
    if most_lag == 1_000:
        assert max(lags) > 3, "some did begin long ago"
    else:
        assert max(lags) == most_lag


def test_episodes_on_a_cluster(client):
    learning_package("torch")
    programs = [QSORT, "benchmark://small-v0/bitcount"]
    agent = PassAgent.for_programs(client, programs)
    assert len(agent.vocabulary) > 10
    rollouts = PassRollouts(client, agent, episode_steps=3)
    with_graph, without = rollouts.begin(QSORT), rollouts.begin(QSORT, with_graph=False)
    ended = []
    while rollouts.under_way:
        ended += rollouts.step()
    assert len(ended) == 2
    assert with_graph.saw_graphs == len(with_graph.sizes) and all(state.graph for state in with_graph.states)
    assert without.saw_graphs == 0 and not any(state.graph for state in without.states)
    for episode in ended:
        flags = [agent.actions[action] for action in episode.passes]
        jobs = [{"benchmark": QSORT, "passes": flags[:length], "observe": ["IrInstructionCount"]}
                for length in range(len(episode.sizes))]
        found = [outcome.observed["IrInstructionCount"] for outcome in client.evaluate_many(jobs).outcomes]
        assert episode.sizes == found
    for most, graphs in ((episode.sizes[0] // 100, 0), (episode.sizes[0], 3)):
        small = PassRollouts(client, agent, episode_steps=2, most_instructions=most)
        episode = small.begin(QSORT)
        while small.under_way:
            small.step()
        assert episode.saw_graphs == graphs == sum(state.graph is not None for state in episode.states)
    sizes = models.instruction_counts(client, [*programs, "benchmark://small-v0/qsrt"])
    assert list(sizes) == programs and sizes[QSORT] == episode.sizes[0]
    assert models.instruction_counts(client, [QSORT], "IrInstructionCountOzAttr")[QSORT] < sizes[QSORT]
    with pytest.raises(ModelError, match="IrInstructionCuont"):
        models.instruction_counts(client, programs, "IrInstructionCuont")
    for ask in (models.instruction_counts, PassAgent.for_programs):
        with pytest.raises(ModelError, match="a list of URIs"):
            ask(client, QSORT)
    alone, twice = (PassAgent.for_programs(client, [QSORT] * times).vocabulary.texts for times in (1, 2))
    assert alone == twice and len(alone) > 10
    with pytest.raises(ModelError, match="qsrt"):
        PassAgent.for_programs(client, ["benchmark://small-v0/qsrt"])
