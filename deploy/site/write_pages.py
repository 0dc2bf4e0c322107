#!/usr/bin/env python3
"""Writes the pages of the site: the Markdown documents, the programs' `--help`, and a page that names what
the Python package exports.

    write_pages.py --bin DIR --package DIR --out DIR

A link to a file that is no page of the site, such as a source, becomes the file's name.
"""

import argparse
import ast
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
from write_man_pages import Help, help_of  # noqa: E402

FRONT = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
PROGRAMS = ("loopfleet", "loopfleet-coordinator", "loopfleet-worker")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def page_of(source):
    """The site's page of a document, relative to its pages; None: it is none."""
    path = source.relative_to(ROOT)
    if path.name == "README.md" and path.parent == pathlib.Path("."):
        return pathlib.Path("index.md")
    return path if path.parts[0] == "docs" or str(path) in FRONT else None


def with_links(source, text):
    """The text with links as the site needs them."""
    here = page_of(source)

    def link(match):
        words, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        file = (source.parent / target).resolve()
        if not file.exists():
            sys.exit(f"{source}: no file {target}")
        page = page_of(file) if file.is_file() else None
        if page is None:
            return f"{words} (`{file.relative_to(ROOT)}`)"
        up = "../" * (len(here.parts) - 1)
        return f"[{words}]({up}{page.as_posix()}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def copy_documents(out):
    for source in [ROOT / "README.md", *(ROOT / name for name in FRONT), *(ROOT / "docs").rglob("*")]:
        if not source.is_file():
            continue
        target = out / page_of(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(with_links(source, source.read_text(encoding="utf-8")), encoding="utf-8")
        else:
            shutil.copyfile(source, target)


def commands_of(program, path=()):
    """Each command below a program, the program first."""
    yield path
    for name in Help(help_of(program, path)).subcommands():
        yield from commands_of(program, (*path, name))


def help_page(program):
    name = pathlib.Path(program).name
    yield f"# {name}\n"
    for path in commands_of(program):
        if path:
            yield f"## {' '.join((name, *path))}\n"
        yield f"```text\n{help_of(program, path).rstrip()}\n```\n"


def exported(package):
    """The names in the package's __all__ whose definition a source or the C++ module's stub has."""
    tree = ast.parse((package / "__init__.py").read_text(encoding="utf-8"))
    (names,) = (ast.literal_eval(node.value) for node in tree.body
                if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    from_module = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "_core"
                   for alias in node.names}
    stub = ast.parse((package / "_core.pyi").read_text(encoding="utf-8"))
    in_stub = {node.name for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    return [name for name in names if name not in from_module - in_stub]


def python_page(package):
    yield "# Python API\n"
    yield "What `loopfleet` exports, from its docstrings; [PYTHON.md](docs/PYTHON.md) explains how the parts work together.\n"
    modules = {"loopfleet": exported(package), "loopfleet.envs": ["LoopTuneEnv", "LoopToolEnv", "WalkEnv", "WalkVectorEnv"],
               "loopfleet.export": ["export", "check"], "loopfleet.campaign": ["Spec", "points"],
               "loopfleet.torch_data": ["ScheduleDataset"],
               "loopfleet.models.cost_model": ["CostModel"], "loopfleet.models.comparison_model": ["ComparisonModel"],
               "loopfleet.models.policy_model": ["PolicyModel"], "loopfleet.models.measured": ["Measured", "read_rows"],
               "loopfleet.models.schedule_features": ["features"], "loopfleet.models.evaluation": ["evaluate"],
               "loopfleet.models.landscapes": ["landscape", "expected_best"], "loopfleet.models.dqn": ["DQN"],
               "loopfleet.models.ppo": ["PPO"], "loopfleet.models.distributed": ["ActorOptions", "train_distributed"],
               "loopfleet.models.pass_agent": ["PassAgent"],
               "loopfleet.models.pass_training": ["train_pass_agent", "PassUpdate"],
               "loopfleet.models.pass_rollouts": ["PassRollouts"], "loopfleet.models.pass_state": ["PassState"],
               "loopfleet.models.pass_trajectory": ["PassTrajectory"], "loopfleet.models.gatv2": ["GATv2"],
               "loopfleet.models.program_graph": ["Vocabulary", "ProgramGraph", "join_graphs"],
               "loopfleet.models.program_sizes": ["instruction_counts"],
               "loopfleet.compiler_gym": ["make"],
               "loopfleet.compiler_gym.wrappers": ["TimeLimit", "CycleOverBenchmarks", "RandomOrderBenchmarks"]}
    for module, names in modules.items():
        yield f"## {module}\n"
        for name in names:
            yield f"::: {module}.{name}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--package", required=True, type=pathlib.Path, help="loopfleet's, with the C++ module's stub")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    copy_documents(given.out)
    (given.out / "cli").mkdir()
    for program in PROGRAMS:
        (given.out / f"cli/{program}.md").write_text("\n".join(help_page(str(given.bin / program))), encoding="utf-8")
    (given.out / "python_api.md").write_text("\n".join(python_page(given.package)), encoding="utf-8")


if __name__ == "__main__":
    main()
