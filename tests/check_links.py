#!/usr/bin/env python3
"""Links of the Markdown documents lead to files and headings. So do mentions in any source of a page of
docs/ (`docs/PAGE.md`), and of a part of it (`PAGE.md, "Part"`: a heading, or what a paragraph begins with
in bold).

    check_links.py [FOLDER]     prints what is broken; exit status 1 if anything is
    check_links.py --self-test  plants broken links in a folder and expects to see them
"""

import pathlib
import re
import subprocess
import sys
import tempfile

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def anchor_of(heading):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    headings = re.findall(r"^#+ (.*)$", without_blocks(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {anchor_of(heading) for heading in headings}


def broken_links(page):
    text = re.sub(r"`[^`]*`", "", without_blocks(page.read_text(encoding="utf-8")))
    for target in LINK.findall(text):
        if "://" in target or target.startswith("mailto:"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page}: no file {target}"
        elif anchor and anchor not in anchors(file):
            yield f"{page}: no heading for {target}"


def broken_mentions(folder, source):
    try:
        text = re.sub(r"\s*\n\s*(?://|#|\*)*\s*", " ", source.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return
    for name, part in re.findall(r"\b((?:docs/)?[A-Z_]+\.md)(?:\]\([^)]*\))?(?:, \"([^\"]+)\")?", text):
        page = folder / "docs" / name.removeprefix("docs/")
        if not page.exists():
            if name.startswith("docs/"):
                yield f"{source}: no file {name}"
        elif part and not re.search(rf"^#+ {re.escape(part)}|\*\*{re.escape(part)}", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{source}: no \"{part}\" in {name}"


def files_of(folder, pattern):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", pattern], cwd=folder, text=True, capture_output=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else folder.rglob(pattern)
    return sorted(file for file in (folder / name for name in names)
                  if file.is_file() and not {"build", "node_modules"} & set(file.relative_to(folder).parts))


def broken_in(folder):
    yield from (line for page in files_of(folder, "*.md") for line in broken_links(page))
    yield from (line for source in files_of(folder, "*") if source != pathlib.Path(__file__).resolve()
                for line in broken_mentions(folder, source))


def self_test():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "docs").mkdir()
        (folder / "docs/GOOD.md").write_text("# A `b`, c\n**D, e.** f\n"
                                             "[here](#a-b-c) [there](BAD.md) [x](https://example.org) `[no](link)`\n")
        (folder / "docs/BAD.md").write_text("```\n[code](none.md)\n```\n[gone](none.md)\n[lost](GOOD.md#none)\n")
        (folder / "x.h").write_text('// See docs/GOOD.md, "D,\n// e", docs/NONE.md and GOOD.md, "G".\n')
        found = [line.removeprefix(f"{folder}/") for line in broken_in(folder)]
        expected = ["docs/BAD.md: no file none.md", "docs/BAD.md: no heading for GOOD.md#none",
                    "x.h: no file docs/NONE.md", 'x.h: no "G" in GOOD.md']
        assert found == expected, found


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit()
    root = pathlib.Path(*sys.argv[1:] or [pathlib.Path(__file__).resolve().parents[1]])
    broken = list(broken_in(root))
    print("\n".join(broken) or "no broken links")
    sys.exit(bool(broken))
