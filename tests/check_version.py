#!/usr/bin/env python3
"""Checks that every file that names the version agrees with CMakeLists.txt, the only place where it is set, and
that CHANGELOG.md has the form of Keep a Changelog. Prints the version.

    tests/check_version.py               what holds for every commit
    tests/check_version.py --release     and what a release needs: a dated section, and nothing unreleased
    tests/check_version.py --self-test
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = "CMakeLists.txt"
PYTHON = "pyproject.toml"
CHANGELOG = "CHANGELOG.md"
KUSTOMIZATIONS = ("deploy/kubernetes/kustomization.yaml", "deploy/kubernetes/autoscaled/kustomization.yaml")
PAGE_FILES = ("monitoring/page/package.json", "monitoring/page/package-lock.json")
# Commands that name an image by its tag.
IMAGE_FILES = ("deploy/container/Dockerfile", "docs/OPERATIONS.md")
IMAGE_TAG = re.compile(r"\bloopfleet-(?:coordinator|worker):(\d+\.\d+\.\d+)")
KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "[Unreleased]"
RELEASE = re.compile(r"\[(\d+\.\d+\.\d+)\] - \d{4}-\d{2}-\d{2}")


def read(root, name):
    return (root / name).read_text(encoding="utf-8")


def version_of(root):
    """What CMakeLists.txt says, read with the expression that pyproject.toml gives to scikit-build-core."""
    table = read(root, PYTHON).partition("[tool.scikit-build.metadata.version]")[2]
    source = re.search(r'^input = "(.*)"$', table, re.MULTILINE)[1]
    expression = re.search(r"^regex = '(.*)'$", table, re.MULTILINE)[1]
    if source != SOURCE:
        raise ValueError(f"{PYTHON}: reads the version in {source}, not in {SOURCE}")
    found = re.search(expression, read(root, SOURCE))
    if found is None:
        raise ValueError(f"{SOURCE}: the expression of {PYTHON} finds no version")
    return found["value"]


def other_versions(root):
    """(place, version) of every other mention of the current version."""
    for name in PAGE_FILES:
        page = json.loads(read(root, name))
        yield name, page["version"]
        if "packages" in page:
            yield name, page["packages"][""]["version"]
    for name in KUSTOMIZATIONS:
        for tag in re.findall(r"newTag: (\S+)", read(root, name)):
            yield name, tag
    for name in IMAGE_FILES:
        for tag in IMAGE_TAG.findall(read(root, name)):
            yield name, tag


def number(version):
    return tuple(map(int, version.split(".")))


def changelog_problems(text, version, is_release):
    sections = [(heading, body) for heading, _, body in
                (section.partition("\n") for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:])]
    if not sections or sections[0][0] != UNRELEASED:
        yield f"the first section is not {UNRELEASED}"
        return
    released = []
    for heading, body in sections:
        if heading != UNRELEASED:
            named = RELEASE.fullmatch(heading)
            if named is None:
                yield f"'{heading}' is not '[X.Y.Z] - YYYY-MM-DD'"
                continue
            released.append(named[1])
        kinds = re.findall(r"^### (.*)$", body, re.MULTILINE)
        yield from (f"{heading}: '{kind}' is none of {', '.join(KINDS)}" for kind in kinds if kind not in KINDS)
        if len(set(kinds)) < len(kinds):
            yield f"{heading}: a heading is there twice"
    if sorted(set(released), key=number, reverse=True) != released:
        yield "releases are not listed from the newest to the oldest, each once"
    elif released and number(released[0]) > number(version):
        yield f"{released[0]} is released, but {SOURCE} says {version}"
    if is_release:
        if released[:1] != [version]:
            yield f"the newest release is not {version}"
        if sections[0][1].strip():
            yield f"{UNRELEASED} is not empty"


def problems(root, is_release=False):
    version = version_of(root)
    yield from (f"{name}: {other}, but {SOURCE} says {version}" for name, other in other_versions(root)
                if other != version)
    yield from (f"{CHANGELOG}: {problem}"
                for problem in changelog_problems(read(root, CHANGELOG), version, is_release))


def self_test():
    def found_after(name, old, new, is_release=False):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file in (SOURCE, PYTHON, CHANGELOG, *KUSTOMIZATIONS, *PAGE_FILES, *IMAGE_FILES):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / file, root / file)
            text = read(root, name)
            assert old in text, (name, old)
            (root / name).write_text(text.replace(old, new, 1), encoding="utf-8")
            return list(problems(root, is_release))

    version = version_of(ROOT)
    for name in (*KUSTOMIZATIONS, *PAGE_FILES, *IMAGE_FILES):
        found = found_after(name, version, "99.0.0")
        assert len(found) == 1 and found[0].startswith(f"{name}: 99.0.0"), found
    assert len(found_after(SOURCE, f"VERSION {version}", "VERSION 98.0.0")) >= 5
    top = f"## {UNRELEASED}\n"
    released = f"{top}\n## [{version}] - 2026-01-02\n"
    for new, said in ((f"{top}\n## [1.2] - today\n", "is not '[X.Y.Z]"), (f"{top}\n### News\n", "'News' is none"),
                      (f"{top}\n## [99.0.0] - 2026-01-02\n", "99.0.0 is released"),
                      (f"{top}\n## [0.0.1] - 2026-01-02\n\n## [0.0.2] - 2026-01-03\n", "not listed from the newest"),
                      ("## News\n", "the first section")):
        found = found_after(CHANGELOG, top, new)
        assert len(found) == 1 and said in found[0], found
    assert found_after(CHANGELOG, top, released) == []
    assert found_after(CHANGELOG, top, released, is_release=True) == []
    assert any("is not empty" in line for line in
               found_after(CHANGELOG, top, f"{top}\n- A change.\n\n## [{version}] - 2026-01-02\n", is_release=True))


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit()
    wrong = list(problems(ROOT, is_release=sys.argv[1:] == ["--release"]))
    print("\n".join(wrong) or version_of(ROOT))
    sys.exit(bool(wrong))
