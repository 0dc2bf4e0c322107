#!/usr/bin/env python3
"""Prints where a run of ctest spent its time: by label, and the ten slowest tests.

    tests/test_times.py FILE.xml      what `ctest --output-junit FILE.xml` wrote
"""

import collections
import sys
import xml.etree.ElementTree

SLOWEST = 10


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    cases = [(float(case.get("time", 0)), case.get("name"))
             for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase")]
    # Every test's name begins with its label; the few without a dot are the tree's own checks.
    by_label = collections.defaultdict(list)
    for seconds, name in cases:
        by_label[name.split(".")[0] if "." in name else "tree"].append(seconds)
    print("\nSeconds of tests by label (two run at a time):")
    for label, times in sorted(by_label.items(), key=lambda entry: -sum(entry[1])):
        print(f"  {label:<14}{sum(times):8.1f}  {len(times):5} tests")
    print(f"The {SLOWEST} slowest:")
    for seconds, name in sorted(cases, reverse=True)[:SLOWEST]:
        print(f"  {seconds:8.1f}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
