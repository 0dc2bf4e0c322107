"""Trees as graphs: networkx builds a multigraph from `loopfleet replay` without loss, and Graphviz reads the
text."""

import json
import shutil
import subprocess
import sys
import unittest

import fleet

try:
    import networkx
except ImportError:
    print("SKIPPED: python3-networkx is not installed (deploy/dependencies.sh --tests)")
    sys.exit(77)

MATMUL = "benchmark://mm-v0/mm8_16_24"
CONVOLUTION = "benchmark://conv-v0/conv1_2_6_6__4_2_3_3"
ADD = "benchmark://loop_tool-cpu-v0/10"
SQUARES = "v:n\nn:2::0,:::0:::::\nn:7:0,0,:0,:::0:0;8;0,::,::\nn:1:1,:0,:::0:0;8;0,::,::\ni:0,\no:2,\n"
NAMES = ["dot", "dot_tree", "dot_graph", "ir_tree_networkx", "ir_graph_networkx", "loop_tree"]


def replay(**request):
    """The answer of `loopfleet replay` to one request."""
    request.setdefault("actions", [])
    request.setdefault("observations", NAMES)
    done = subprocess.run([fleet.program("loopfleet"), "replay"], input=json.dumps(request) + "\n",
                          text=True, capture_output=True, env=fleet.clean_environment(), timeout=fleet.COMMAND_LIMIT_S)
    answer = json.loads(done.stdout)
    assert "error" not in answer, answer
    return answer


def multigraph(data):
    """Builds the graph; versions of networkx name the edge list differently."""
    try:
        return networkx.node_link_graph(data, edges="edges")
    except TypeError:
        return networkx.node_link_graph(data, link="edges")


def without(record, *keys):
    return {key: value for key, value in record.items() if key not in keys}


REQUESTS = {
    "matmul": {"uri": MATMUL, "actions": ["split_4", "swap_down", "unroll"]},
    "two_roots": {"uri": MATMUL, "actions": ["swap_down"]},
    "convolution": {"uri": CONVOLUTION, "actions": ["down", "down", "split_2"]},
    "simple": {"uri": ADD, "actions": ["toggle_mode", "up"]},
    "squares": {"ir": SQUARES},
}


class GraphExportTest(unittest.TestCase):
    def test_networkx_holds_everything(self):
        for name, request in REQUESTS.items():
            answer = replay(**request)
            for kind in ("ir_tree_networkx", "ir_graph_networkx"):
                with self.subTest(program=name, kind=kind):
                    data = answer[kind]
                    graph = multigraph(data)
                    self.assertIsInstance(graph, networkx.MultiDiGraph)
                    self.assertEqual(
                        {n: dict(attributes) for n, attributes in graph.nodes(data=True)},
                        {node["id"]: without(node, "id") for node in data["nodes"]})
                    self.assertEqual(graph.number_of_edges(), len(data["edges"]))
                    for edge in data["edges"]:
                        self.assertEqual(graph.edges[edge["source"], edge["target"], edge["key"]],
                                         without(edge, "source", "target", "key"))

    def test_the_tree_is_a_forest_with_the_lines_of_the_text(self):
        for name, request in REQUESTS.items():
            with self.subTest(program=name):
                answer = replay(**request)
                tree = multigraph(answer["ir_tree_networkx"])
                lines = answer["loop_tree"].splitlines()
                self.assertEqual(list(tree), [f"L{i}" for i in range(len(lines))])
                roots = [node for node in tree if tree.in_degree(node) == 0]
                self.assertEqual(len(roots), sum(not line.startswith(" ") for line in lines))
                self.assertTrue(networkx.is_forest(tree))
                for i, line in enumerate(lines):
                    depth = len(networkx.ancestors(tree, f"L{i}"))
                    self.assertEqual(depth, len(line) - len(line.lstrip(" ")))

    def test_features_are_the_values_in_alphabetical_order(self):
        graph = multigraph(replay(uri=MATMUL)["ir_graph_networkx"])
        loop = graph.nodes["L0"]
        self.assertEqual(loop["features"], [1, 8, 0, 1, 0, 0])
        self.assertEqual([loop[key] for key in sorted(
            ("cursor", "size", "tail", "type", "unroll", "vectorize"))], loop["features"])
        self.assertEqual(len(graph.nodes["L3"]["features"]), 2)
        self.assertEqual(len(graph.nodes["D0"]["features"]), 1)
        self.assertEqual(graph.edges["L0", "D0", 0]["label"], "24")  # one row of A[m, k] further

    def test_an_operation_that_reads_one_buffer_twice_has_two_edges_from_it(self):
        graph = multigraph(replay(ir=SQUARES)["ir_graph_networkx"])
        self.assertEqual(graph.number_of_edges("D0", "L1"), 2)

    @unittest.skipUnless(shutil.which("dot"), "graphviz is not installed")
    def test_graphviz_reads_the_text(self):
        awkward = SQUARES.replace("v:n", "v:a{b}<c>")
        # The original's labels of `dot` have nested braces, which Graphviz reads as text but does not draw
        # as records. They are unchanged, for existing parsers.
        readers = {"dot": ["nop"], "dot_tree": ["dot", "-Tplain"],
                   "dot_graph": ["dot", "-Tplain"]}
        for name, request in {**REQUESTS, "awkward": {"ir": awkward}}.items():
            answer = replay(**request)
            for kind, reader in readers.items():
                with self.subTest(program=name, kind=kind):
                    drawn = subprocess.run(reader, input=answer[kind], text=True,
                                           capture_output=True, timeout=fleet.COMMAND_LIMIT_S)
                    self.assertEqual(drawn.returncode, 0, drawn.stderr)
                    complaints = [line for line in drawn.stderr.splitlines() if "font" not in line]
                    self.assertEqual(complaints, [])

    @unittest.skipUnless(shutil.which("dot"), "graphviz is not installed")
    def test_the_edges_of_dot_tree_lead_between_its_nodes(self):
        answer = replay(uri=MATMUL, actions=["split_4"])
        drawn = subprocess.run(["dot", "-Tplain"], input=answer["dot_tree"], text=True,
                               capture_output=True, timeout=fleet.COMMAND_LIMIT_S, check=True).stdout.splitlines()
        nodes = {line.split()[1] for line in drawn if line.startswith("node ")}
        edges = [tuple(line.split()[1:3]) for line in drawn if line.startswith("edge ")]
        self.assertEqual(len(nodes), len(answer["loop_tree"].splitlines()))
        self.assertEqual(len(edges), len(nodes) - 1)


if __name__ == "__main__":
    fleet.main()
