#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of doc/safety.md: promises, the tests that prove them, and what these covered.

With --write it is made from the NAME.covered files that the tests left in the build directory.
Without, it checks that every promise has a test and that every test named there exists.
"""

import ast
import os
import pathlib
import re
import sys

SOURCE = pathlib.Path(os.environ.get("PCPTUNE_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("PCPTUNE_BUILD", "."))
DOC = SOURCE / "doc/safety.md"
BEGIN, END = "<!-- covered: begin -->\n", "<!-- covered: end -->\n"
TITLES = {
    1: "The record",
    2: "Stop",
    3: "Foreign writes",
    4: "Refusals",
    5: "A blocked write or pass",
    6: "Limits",
    7: "Orders",
    8: "Drains",
    9: "The ledger",
}


def tests_there():
    names = set()
    for path in (SOURCE / "tests/safety").glob("*.py"):
        for cls in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(cls, ast.ClassDef):
                names |= {
                    f"{path.name} {cls.name}.{f.name}"
                    for f in cls.body
                    if isinstance(f, ast.FunctionDef) and f.name.startswith("test_")
                }
    return names


def rows():
    lines = []
    for path in sorted((BUILD / "tests/safety").glob("*.covered")):
        lines += [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted(lines, key=lambda row: (int(row[0]), row[1]))


def table():
    out = ["| | promise | test | covered |\n|---|---|---|---|\n"]
    for promise, test, n, what in rows():
        out.append(f"| {promise} | {TITLES[int(promise)]} | `{test}` | {n} {what} |\n")
    return "".join(out)


def write(text):
    head, rest = text.split(BEGIN)
    DOC.write_text(head + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1], encoding="utf-8")


def check(text):
    named = re.findall(r"^\| (\d+) \| [^|]* \| `([^`]+)` \| (\d+) ", text, re.M)
    there, wrong = tests_there(), []
    wrong += [f"names a test that is not there: {test}" for _, test, _ in named if test not in there]
    wrong += [f"does not name {test}" for test in sorted(there - {test for _, test, _ in named})]
    wrong += [f"promise {p} has no test" for p in TITLES if str(p) not in {p for p, _, _ in named}]
    wrong += [f"{test} covered nothing" for _, test, n in named if int(n) == 0]
    for line in wrong:
        print(f"doc/safety.md {line} (make doc-safety writes the table)")
    print(f"{len(named)} tests of {len(TITLES)} promises, {len(wrong)} complaints")
    return 1 if wrong else 0


def main():
    if "--write" in sys.argv[1:]:
        write(DOC.read_text(encoding="utf-8"))
    return check(DOC.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
