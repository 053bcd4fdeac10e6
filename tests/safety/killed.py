#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Killed at every system call of the act path: what is found afterwards is put right.

Points beyond 150 are taken only with SAFETY_FULL=1; otherwise every k-th and the last twenty.
"""

import unittest

import safety
from safety import BUILD, FULL, LARGEST, policy

KILLED = 137
POINTS = 150
TAIL = 20


@unittest.skipUnless(safety.can_trace(), "tracing (ptrace) is not allowed here")
class Killed(safety.SafetyTest):
    promise = 1

    def killat(self, *what):
        return [BUILD / "tests/killpoint/killat", "--from=record.new", *what]

    def count(self, run):
        out = self.fake.dir / "count"
        run(self.killat("--count", f"--output={out}"))
        return int(out.read_text())

    def points(self, total):
        # runs differ by a few calls, so a few points lie behind the end of most
        every = range(1, total + 6)
        if FULL or total <= POINTS:
            return list(every)
        step = -(-total // (POINTS - TAIL))
        return sorted(set(every[::step]) | set(every[-TAIL:]))

    def at_every_point(self, prepare, run, intended, what):
        """`run` is killed at every point; then a rollback ends at the baseline 0, or a start at
        `intended` (with the decision of its policy) and, at its end, at the baseline."""
        prepare()
        total, kills, points = self.count(run), 0, None
        points = self.points(total)
        for i, n in enumerate(points):
            self.ctl("rollback")
            self.assertEqual(self.fake.fraction(), 0, f"before point {n}")
            prepare()
            kills += run(self.killat(str(n))) == KILLED
            where = f"killed at call {n} of {total}: the record:\n{self.recorded()}"
            self.assertIn(self.fake.fraction(), (0, 100, LARGEST), where)
            if i % 4 == 3:
                self.then_a_start(intended, where)
            else:
                self.ctl("rollback")
            self.assertEqual(self.fake.fraction(), 0, where)
            self.assertNotIn("high_fraction", self.recorded(), where)
        self.assertGreater(kills, len(points) // 2, "most points must be reached")
        self.covered(kills, f"kill points of {total}: {what}")

    def then_a_start(self, intended, where):
        d = self.daemon({"p": policy(intended)} if intended else {}).ready()
        safety.wait_until(
            f"a start ends with {intended}", lambda: self.fake.fraction() == intended, words=lambda: where + d.said()
        )
        self.assertEqual(d.stop(), 0, where + d.said())

    def run_ctl(self, *arguments):
        return lambda before: self.ctl(*arguments, expect=None, before=before).returncode

    def run_daemon(self, before):
        d = self.daemon({"p": policy(100)}, "--for=200ms", before=before)
        code = d.wait()
        self.assertIn(code, (0, KILLED), d.said())
        return code

    def park(self):
        self.fake.control("drain", "idle 0-1", "park 0 0:Normal 3000")

    def keep_100(self):
        d = self.enforcing(100, config="OnStop=keep")
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 100)

    def test_at_a_change_and_its_restore_at_the_end(self):
        self.start_fake()
        self.at_every_point(lambda: None, self.run_daemon, 100, "a change by the daemon, and its restore")

    def test_at_a_restore_of_a_kept_value(self):
        self.start_fake()
        kept = []

        def prepare():  # as keep_100(), from a copy of what it left
            if not kept:
                self.keep_100()
                kept.append(self.fake.record.read_bytes())
            self.fake.record.write_bytes(kept[0])
            self.fake.foreign(100)

        self.at_every_point(prepare, self.run_ctl("rollback"), 100, "pcptunectl rollback")

    def test_at_a_squeeze(self):
        self.start_fake()
        self.at_every_point(self.park, self.run_ctl("drain", "--mode=squeeze"), 0, "pcptunectl drain --mode=squeeze")

    def test_at_a_squeeze_with_a_tuned_value_in_place(self):
        self.start_fake()
        kept = []

        def prepare():
            if not kept:
                self.keep_100()
                kept.append(self.fake.record.read_bytes())
            self.fake.record.write_bytes(kept[0])
            self.fake.foreign(100)
            self.park()

        self.at_every_point(
            prepare, self.run_ctl("drain", "--mode=squeeze"), 100, "a squeeze while 100 is in place, 0 the baseline"
        )

    def test_at_a_trim_which_writes_no_knob(self):
        self.start_fake()
        self.killat = lambda *what: [BUILD / "tests/killpoint/killat", "--from=stat_refresh", *what]
        self.at_every_point(self.park, self.run_ctl("drain"), 0, "pcptunectl drain")


if __name__ == "__main__":
    safety.main()
