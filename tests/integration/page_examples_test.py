#!/usr/bin/env python3
"""The examples of docs/LOOP_TREES.md match the command's output: runs every example and draws its pictures
again.

    page_examples_test.py --bin DIR [--tests DIR]   runs as a test
    page_examples_test.py --bin DIR --update        writes what the examples print into the page

An example is a fenced block marked `console`: lines that start with `$ ` are commands (a line that
ends in a backslash goes on), the others are what they print. All blocks of a page run in one shell,
from the top, so a function defined in one is there in the next.
"""

import argparse
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "LOOP_TREES.md"
DRAW = ROOT / "docs" / "pictures" / "draw_loop_trees.py"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@ example {} @@"


def commands_of(block):
    """The commands of a block, each with its continuation lines."""
    commands = []
    goes_on = False
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append(line)
        elif goes_on:
            commands[-1] += "\n" + line
        goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
    return commands


def outputs_of(commands, bin_folder):
    """What each command prints, in one shell."""
    script = ["set -o pipefail"]
    for number, command in enumerate(commands):
        script += [f"echo '{MARK.format(number)}'", command.removeprefix("$ ")]
    environment = {"PATH": f"{bin_folder}:{os.environ.get('PATH', '/usr/bin:/bin')}",
                   "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["bash", "-c", "\n".join(script)], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    parts = re.split(r"^@@ example \d+ @@\n", done.stdout, flags=re.MULTILINE)[1:]
    if len(parts) != len(commands):
        raise RuntimeError(f"{len(commands)} commands, {len(parts)} outputs:\n{done.stdout}")
    return parts


def as_run(page, bin_folder):
    """The page with what its examples print now."""
    blocks = [commands_of(match.group(1)) for match in BLOCK.finditer(page)]
    outputs = iter(outputs_of([command for block in blocks for command in block], bin_folder))
    remaining = iter(blocks)

    def block_as_run(_):
        text = ""
        for command in next(remaining):
            output = next(outputs)
            text += command + "\n" + output
            if output and not output.endswith("\n"):
                text += "\n"
        return f"```console\n{text}```"

    return BLOCK.sub(block_as_run, page)


class PageExamplesTest(unittest.TestCase):
    bin_folder = None

    def setUp(self):
        for tool in ("bash", "jq"):
            if shutil.which(tool) is None:
                print(f"SKIPPED: {tool} is not installed: deploy/dependencies.sh --tests")
                sys.exit(77)

    def test_every_example_prints_what_the_page_says(self):
        page = PAGE.read_text(encoding="utf-8")
        self.assertGreater(len(BLOCK.findall(page)), 10)
        now = as_run(page, self.bin_folder)
        difference = difflib.unified_diff(page.splitlines(), now.splitlines(), "the page", "as run",
                                          lineterm="")
        self.assertEqual(page, now, "\n" + "\n".join(difference) + f"\nto update: {__file__} --update")

    def test_the_pictures_show_what_replay_says(self):
        done = subprocess.run([sys.executable, "-B", str(DRAW), "--bin", self.bin_folder, "--check"],
                              text=True, capture_output=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_picture_is_shown_and_every_link_leads_somewhere(self):
        page = PAGE.read_text(encoding="utf-8")
        targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page)
        local = [target for target in targets if "://" not in target]
        for target in local:
            self.assertTrue((PAGE.parent / target).exists(), target)
        pictures = {f"pictures/{path.name}" for path in DRAW.parent.glob("*.svg")
                    if path.name != "editor.svg"}  # of docs/EDITOR.md
        self.assertEqual(pictures - set(local), set(), "pictures that the page does not show")

    def test_a_changed_page_is_noticed(self):
        page = PAGE.read_text(encoding="utf-8")
        wrong = page.replace("for m in 64 : L0", "for m in 65 : L0", 1)
        self.assertNotEqual(wrong, page)
        self.assertNotEqual(as_run(wrong, self.bin_folder), wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--tests", help="not used: every integration test is given it")
    parser.add_argument("--update", action="store_true")
    arguments, rest = parser.parse_known_args()
    if arguments.update:
        PAGE.write_text(as_run(PAGE.read_text(encoding="utf-8"), arguments.bin), encoding="utf-8")
        subprocess.run([sys.executable, "-B", str(DRAW), "--bin", arguments.bin], check=True)
        sys.exit(0)
    PageExamplesTest.bin_folder = arguments.bin
    unittest.main(argv=[sys.argv[0], *rest])
