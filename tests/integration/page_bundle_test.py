"""The page's bundle: small enough, nothing inline, nothing from other origins, right types, and a list of
packages that names no registry."""

import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = ROOT / "monitoring" / "page"
MAX_GZIP_BYTES = 60 * 1024

BUNDLE = None
PACKAGES = None


class PageBundleTest(unittest.TestCase):
    def setUp(self):
        if not BUNDLE:
            self.skipTest("this build is without the page (LOOPFLEET_PAGE=OFF)")

    def text(self, name):
        return (pathlib.Path(BUNDLE) / name).read_text(encoding="utf-8")

    def test_size(self):
        sizes = json.loads(self.text("size.json"))
        self.assertEqual(sizes["total_gzip"],
                         sum(size["gzip"] for name, size in sizes.items() if name != "total_gzip"))
        self.assertLessEqual(sizes["total_gzip"], MAX_GZIP_BYTES, sizes)
        self.assertEqual(set(sizes), {"page.js", "page.css", "index.html", "icon.svg", "total_gzip"})

    def test_nothing_inline(self):
        html = self.text("index.html")
        self.assertNotRegex(html, r"<style|style=|\son[a-z]+=|<script(?![^>]*\ssrc=)")

    def test_nothing_from_elsewhere(self):
        # XML namespaces are never fetched.
        harmless = re.compile(r"https?://www\.w3\.org/")
        for name in ("page.js", "page.css", "index.html", "icon.svg"):
            text = harmless.sub("", self.text(name))
            self.assertEqual(re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]{2,}[^\s\"']*", text), [], name)

    def test_the_list_of_packages(self):
        packages = json.loads((SOURCES / "package-lock.json").read_text(encoding="utf-8"))["packages"]
        for name, package in packages.items():
            self.assertNotIn("resolved", package, f"{name}: npm install --omit-lockfile-registry-resolved")
            if name:
                self.assertRegex(package["integrity"], r"^sha512-", name)

    def test_types(self):
        compiler = pathlib.Path(PACKAGES) / "node_modules" / "typescript" / "bin" / "tsc"
        if not compiler.exists():
            self.skipTest(f"there is no {compiler}: run deploy/dependencies.sh --tests")
        # The compiler looks for the packages beside the sources.
        with tempfile.TemporaryDirectory(prefix="lf-test-") as folder:
            place = pathlib.Path(folder) / "monitoring/page"
            shutil.copytree(SOURCES / "src", place / "src")
            shutil.copytree(SOURCES.parent.parent / "client/javascript", pathlib.Path(folder) / "client/javascript")
            shutil.copy(SOURCES / "tsconfig.json", place)
            (place / "node_modules").symlink_to(pathlib.Path(PACKAGES) / "node_modules")
            done = subprocess.run(["node", str(compiler), "-p", str(place)], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", required=True)
    parser.add_argument("--packages", required=True)
    own, rest = parser.parse_known_args()
    BUNDLE, PACKAGES = own.bundle, own.packages
    unittest.main(argv=[sys.argv[0], "-v", *rest])
