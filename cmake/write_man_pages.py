#!/usr/bin/env python3
"""Writes a manual page from what programs say with --help: the same definitions that parse their command
lines, so that it cannot say anything else. Commands below a program are sections of its page.

    write_man_pages.py --version VERSION --date YYYY-MM-DD --out PAGE.1 PROGRAM
"""

import argparse
import datetime
import pathlib
import re
import subprocess

HEADINGS = ("Options", "Positionals", "Subcommands")


def help_of(program, path):
    done = subprocess.run([program, *path, "--help"], text=True, capture_output=True, check=True, timeout=60)
    return done.stdout


def roff(text):
    """Text as roff would have it: nothing of it is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


class Help:
    """The parts of a help text."""

    def __init__(self, text):
        self.description, self.usage, self.entries, self.footer = "", "", {}, []
        heading = None
        for line in text.splitlines():
            if line.startswith("Usage: "):
                self.usage, heading = line.removeprefix("Usage: "), ""
            elif heading is None:
                self.description = (self.description + " " + line).strip()
            elif line.rstrip(":") in HEADINGS and line.endswith(":"):
                heading = line.rstrip(":")
                self.entries[heading] = []
            elif heading and line.startswith("  "):
                self.add(self.entries[heading], line)
            elif line.strip() or self.footer:
                heading = ""
                self.footer.append(line)

    @staticmethod
    def add(entries, line):
        # "  name TYPE      what it is": names begin in column 2, texts that are too long for their
        # line follow alone in the next one.
        if re.match(r"  \S", line):
            name, _, text = line.strip().partition("  ")
            entries.append([name.strip(), text.strip()])
        else:
            entries[-1][1] = (entries[-1][1] + " " + line.strip()).strip()

    def subcommands(self):
        return [name.split()[0] for name, _ in self.entries.get("Subcommands", [])]


def entry_lines(entries):
    for name, text in entries:
        flag, _, kind = name.partition(" ")
        kind = kind.replace("REQUIRED", "(required)")
        yield ".TP"
        yield "\\fB" + roff(flag.replace(",", ", ")) + "\\fR" + (" \\fI" + roff(kind) + "\\fR" if kind else "")
        yield roff(text) or "\\&"


def footer_lines(footer):
    footer = list(footer)
    while footer and not footer[-1].strip():
        footer.pop()
    if not footer:
        return
    yield ".PP"
    yield ".nf"
    yield from (roff(line) for line in footer)
    yield ".fi"


def section_lines(program, path, depth_limit=4):
    """The commands below `path`, each as a subsection."""
    assert depth_limit > 0, path
    for name in Help(help_of(program, path)).subcommands():
        below = [*path, name]
        page = Help(help_of(program, below))
        yield ".SS " + roff(" ".join(below))
        yield roff(page.description)
        yield ".PP"
        yield "\\fB" + roff(page.usage) + "\\fR"
        yield from entry_lines(page.entries.get("Positionals", []))
        # What every command takes is said once, at the top.
        own = [entry for entry in page.entries.get("Options", [])
               if not entry[0].startswith(("-h,", "--address", "--keys", "--timeout", "--config"))]
        yield from entry_lines(own)
        yield from footer_lines(page.footer)
        yield from section_lines(program, below, depth_limit - 1)


def page_lines(program, version, date):
    name = pathlib.Path(program).name
    top = Help(help_of(program, []))
    summary = top.description[0].lower() + top.description[1:].rstrip(".")
    yield f'.TH "{name.upper()}" 1 "{date}" "loopfleet {version}" "loopfleet"'
    yield ".SH NAME"
    yield f"{roff(name)} \\- {roff(summary)}"
    yield ".SH SYNOPSIS"
    yield "\\fB" + roff(top.usage) + "\\fR"
    yield ".SH OPTIONS"
    yield from entry_lines(top.entries.get("Options", []))
    commands = list(section_lines(program, []))
    if commands:
        yield ".SH COMMANDS"
        yield from commands
    if top.footer:
        yield ".SH SETTINGS AND EXIT CODES"
        yield from list(footer_lines(top.footer))[1:]
    yield ".SH SEE ALSO"
    others = [other for other in ("loopfleet", "loopfleet-coordinator", "loopfleet-worker") if other != name]
    yield ", ".join("\\fB" + roff(other) + "\\fR(1)" for other in others)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--version", required=True)
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    text = "\n".join(page_lines(arguments.program, arguments.version, arguments.date)) + "\n"
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
