"""What profiles say against programs that are timed alone: shares within 3 points, and levels that agree within 5.

The host may be busy at any moment, so a case is tried again with new profiles and new figures; each try takes
several of each. A wrong attribution fails them all."""

import pathlib
import statistics
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import fleet  # noqa: E402
from fleet import Fleet  # noqa: E402
from programs import powers, products  # noqa: E402

TRIES = 6
REPEATS = 7
POINTS = 0.03
LEVEL_POINTS = 0.05


class ProfileTruthTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Fleet(workers=1)
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.folder = tempfile.TemporaryDirectory(prefix="lf-truth-")
        cls.addClassCleanup(cls.folder.cleanup)

    def outcome(self, ir, *flags):
        path = pathlib.Path(self.folder.name) / "program.ir"
        path.write_text(ir)
        for _ in range(fleet.MEASURING_TRIES):
            (outcome,) = self.cluster.json("eval", "--ir", str(path), "--fresh", *flags)
            if outcome["status"] == "ok":
                return outcome
            self.assertEqual(outcome["error"]["code"], "UNSTABLE_TIMING", outcome)
        self.fail(f"the host is too busy for any figure: {outcome}")

    def timed_share(self, first, second):
        """Of two programs that are timed alone, in turns: the first one's share of their sum."""
        return statistics.median(
            one / (one + other) for one, other in
            ((self.outcome(first)["elapsed_ns"], self.outcome(second)["elapsed_ns"]) for _ in range(REPEATS)))

    def shares(self, ir, level, of):
        """The mean, over some profiles, of the first part's share of both parts."""
        found = []
        for _ in range(REPEATS):
            values = self.whole_profile(ir, level)
            parts = of(values)
            self.assertEqual(len(parts), 2, values)
            found.append(parts[0] / sum(parts))
        return statistics.fmean(found)

    def whole_profile(self, ir, level):
        """One in which a neighbour did not make the counting look too dear to be shown."""
        for _ in range(fleet.MEASURING_TRIES):
            values = self.outcome(ir, "--profile", level)["observed"]
            if "not shown" not in values["note"]:
                return values
        self.fail(f"lines are left out each time: {values}")

    def check(self, together, alone, levels, points=POINTS):
        """`levels`: by level, how to find the parts' shares."""
        told = []
        for _ in range(TRIES):
            expected = self.timed_share(*alone)
            shares = {level: self.shares(together, level, of) for level, of in levels.items()}
            told.append({"alone": expected, **shares})
            near = all(abs(share - expected) <= points for share in shares.values())
            agree = max(shares.values()) - min(shares.values()) <= LEVEL_POINTS
            if near and agree:
                print(f"{self.id().rpartition('.')[2]}: {told[-1]}")
                return
        self.fail(f"shares of the first part: {told}")

    def check_products(self, ratio):
        def by_root(values):
            return [share for share, part in zip(values["share"], values["part"]) if part == 0]

        def by_line(values):
            roots = self.roots_of(products(64, 64 * ratio))
            return [sum(share for share, ref, part in zip(values["share"], values["ref"], values["part"])
                        if part != 4 and begin <= ref < end) for begin, end in roots]

        self.check(products(64, 64 * ratio), (products(64), products(64 * ratio)),
                   {"roots": by_root, "lines": by_line})

    def roots_of(self, ir):
        """(first node, one past the last one) of each root."""
        path = pathlib.Path(self.folder.name) / "tree.ir"
        path.write_text(ir)
        tree = self.cluster.command("eval", "--ir", str(path)).stdout
        lines = [line for line in tree.splitlines() if line.lstrip().startswith(("for ", "%"))]
        begins = [place for place, line in enumerate(lines) if not line.startswith(" ")]
        return list(zip(begins, [*begins[1:], len(lines)]))

    def test_equal_roots(self):
        self.check_products(1)

    def test_one_to_four(self):
        self.check_products(4)

    def test_one_to_ten(self):
        self.check_products(10)

    def test_two_bodies_in_a_loop(self):
        # L0 holds L1 with a power of 1,536 columns and L4 with one of 4,608. An entry of L1 takes 6,000 ticks on a quick
        # host, and loops of less than 4,000 are not counted.
        def by_loop(values):
            return [share for share, ref, part in zip(values["share"], values["ref"], values["part"])
                    if part == 0 and ref in (1, 4)]

        def by_line(values):
            def inside(begin, end):
                return sum(share for share, ref in zip(values["share"], values["ref"]) if begin <= ref < end)
            return [inside(1, 4), inside(4, 7)]

        self.check(powers(16, 1536, 4608), (powers(16, 1536), powers(16, 4608)),
                   {"loops": by_loop, "lines": by_line})


if __name__ == "__main__":
    fleet.main()
