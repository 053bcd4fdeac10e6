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


class Scene(safety.SafetyTest):
    """A fake kernel, what is prepared on it, what runs there and is killed, and where it must end."""

    promise = 1
    counted_from = "record.new"
    options = ("--cpus=2", "--release=6.18")
    intended = 0
    what = ""

    def setUp(self):
        super().setUp()
        self.start_fake(*self.options)

    def prepare(self):
        pass

    def run_it(self, before):
        raise NotImplementedError

    def killat(self, *what):
        return [BUILD / "tests/killpoint/killat", f"--from={self.counted_from}", *what]

    def count(self):
        out = self.fake.dir / "count"
        self.prepare()
        self.run_it(self.killat("--count", f"--output={out}"))
        return int(out.read_text())

    def at(self, n, start):
        """Killed at call n; then a rollback ends at the baseline 0, or a start at what its policy
        decides and, at its end, at the baseline. Was the call reached?"""
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0, f"before point {n}")
        self.prepare()
        killed = self.run_it(self.killat(str(n))) == KILLED
        where = f"killed at call {n}: the record:\n{self.recorded()}"
        self.assertIn(self.fake.fraction(), (0, 100, LARGEST), where)
        if start:
            self.then_a_start(where)
        else:
            self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0, where)
        self.assertNotIn("high_fraction", self.recorded(), where)
        return killed

    def then_a_start(self, where):
        d = self.daemon({"p": policy(self.intended)} if self.intended else {}).ready()
        safety.wait_until(
            f"a start ends with {self.intended}",
            lambda: self.fake.fraction() == self.intended,
            words=lambda: where + d.said(),
        )
        self.assertEqual(d.stop(), 0, where + d.said())

    def park(self):
        self.fake.control("drain", "idle 0-1", "park 0 0:Normal 3000")

    def keep_100(self):
        """As a daemon leaves it that stops with OnStop=keep: made once, then put there again."""
        if not hasattr(self, "kept"):
            d = self.enforcing(100, config="OnStop=keep")
            self.assertEqual(d.stop(), 0, d.said())
            self.kept = self.fake.record.read_bytes()
        self.fake.record.write_bytes(self.kept)
        self.fake.foreign(100)


class Change(Scene):
    intended = 100
    what = "a change by the daemon, and its restore"

    def run_it(self, before):
        d = self.daemon({"p": policy(100)}, "--for=200ms", before=before)
        code = d.wait()
        self.assertIn(code, (0, KILLED), d.said())
        return code


class Restore(Scene):
    intended = 100
    what = "pcptunectl rollback"

    def prepare(self):
        self.keep_100()

    def run_it(self, before):
        return self.ctl("rollback", expect=None, before=before).returncode


class Squeeze(Scene):
    what = "pcptunectl drain --mode=squeeze"

    def prepare(self):
        self.park()

    def run_it(self, before):
        return self.ctl("drain", "--mode=squeeze", expect=None, before=before).returncode


class SqueezeOfATunedKernel(Squeeze):
    intended = 100
    what = "a squeeze while 100 is in place, 0 the baseline"

    def prepare(self):
        self.keep_100()
        self.park()


class Trim(Scene):
    counted_from = "stat_refresh"
    what = "pcptunectl drain"

    def prepare(self):
        self.park()

    def run_it(self, before):
        return self.ctl("drain", expect=None, before=before).returncode


def points_of(total):
    # runs differ by a few calls, so a few points lie behind the end of most
    every = range(1, total + 6)
    if not FULL and total > POINTS:
        step = -(-total // (POINTS - TAIL))
        every = sorted(set(every[::step]) | set(every[-TAIL:]))
    return [(n, i // safety.AT_ONCE % 4 == 3) for i, n in enumerate(every)]


@unittest.skipUnless(safety.can_trace(), "tracing (ptrace) is not allowed here")
class Killed(safety.SafetyTest):
    promise = 1

    def at_every_point(self, scene):
        total = safety.side_by_side(lambda: scene("count"), [0], lambda s, _: s.count())
        points = points_of(total)
        kills = safety.side_by_side(lambda: scene("count"), points, lambda s, point: s.at(*point))
        self.assertGreater(kills, len(points) // 2, "most points must be reached")
        self.covered(kills, f"kill points of {total}: {scene.what}")

    def test_at_a_change_and_its_restore_at_the_end(self):
        self.at_every_point(Change)

    def test_at_a_restore_of_a_kept_value(self):
        self.at_every_point(Restore)

    def test_at_a_squeeze(self):
        self.at_every_point(Squeeze)

    def test_at_a_squeeze_with_a_tuned_value_in_place(self):
        self.at_every_point(SqueezeOfATunedKernel)

    def test_at_a_trim_which_writes_no_knob(self):
        self.at_every_point(Trim)


if __name__ == "__main__":
    safety.main()
