#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Drains by hand: whatever ends them, the fraction comes back."""

import os
import pty
import re
import signal
import subprocess
import time

import safety
from safety import FRACTION, LARGEST, REFRESH, wait_until


class Scene(safety.SafetyTest):
    promise = 8

    def prepare(self, *options):
        self.start_fake(*(options or ("--cpus=4", "--nodes=2", "--release=6.18")))
        self.fake.control("idle 0-3")

    def park(self):
        self.fake.control("drain", "park 0 0:Normal 60000", "park 3 1:Normal 20000")

    def begin(self, *arguments, **named):
        p = subprocess.Popen(
            [safety.BUILD / "pcptunectl", f"--root={self.fake.dir}", "drain", "--mode=squeeze", *arguments],
            stdin=subprocess.DEVNULL,
            **({"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} | named),
        )
        self.stack.callback(p.wait)
        self.stack.callback(self.fake.control, "clear", "unspin all")
        self.stack.callback(p.kill)
        return p

    def passes_of_a_whole_one(self):
        self.park()
        self.fake.control("reset")
        return self.ctl_json("drain", "--mode=squeeze")["passes"]

    def stopped_in(self, at, how):
        self.park()
        self.fake.control("clear", f"fault times=1 skip={at - 1} {REFRESH} read block forever")
        p = self.begin()
        wait_until("the pass is there", lambda: self.fake.number("blocked") or p.poll() is not None)
        if p.poll() is not None:
            return False  # it ended sooner this time
        self.assertEqual(self.fake.fraction(), LARGEST)
        p.send_signal(how)
        if how == signal.SIGKILL:
            self.fake.control("clear")
            p.communicate()
            self.ctl("rollback")
        else:
            wait_until("the fraction is back while the pass hangs", lambda: self.fake.fraction() == 0)
            self.fake.control("clear")
            text = p.communicate(timeout=safety.PATIENCE)[0]
            self.assertEqual(p.returncode, 1, text)
        self.assertEqual(self.fake.fraction(), 0, f"{how!r} in pass {at}")
        return True

    def failed_in(self, at, error):
        self.park()
        self.fake.control("clear", f"fault times=1 skip={at} {error}")
        done = self.ctl("drain", "--mode=squeeze", expect=None)
        self.assertEqual(self.fake.fraction(), 0, f"pass {at}: {error}\n{done.stdout}{done.stderr}")
        self.assertNotIn("high_fraction", self.recorded(), f"pass {at}: {error}")
        return True


class Prepared(Scene):
    def setUp(self):
        super().setUp()
        self.prepare()


class Drains(Scene):
    def test_stopped_by_a_signal_at_every_pass_put_the_fraction_back(self):
        self.prepare()
        total = self.passes_of_a_whole_one()
        passes = range(1, total + 1)
        cases = [(at, how) for at in passes for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]
        n = safety.side_by_side(lambda: Prepared("park"), cases, lambda scene, case: scene.stopped_in(*case))
        self.assertGreater(n, len(cases) // 2, "most passes must be reached")
        self.covered(n, f"signals at passes, of {total} passes")

    def test_stopped_by_an_error_of_any_call_put_the_fraction_back(self):
        self.prepare()
        total = self.passes_of_a_whole_one()
        errors = [f"{REFRESH} {op} {errno}" for op in ("open", "read") for errno in ("EIO", "EACCES", "EINTR")]
        errors += ["proc/zoneinfo open EIO", "proc/zoneinfo read EIO", "proc/zoneinfo read cut 700"]
        cases = [(at, error) for at in range(total + 1) for error in errors]
        n = safety.side_by_side(lambda: Prepared("park"), cases, lambda scene, case: scene.failed_in(*case))
        self.covered(n, f"errors of passes and counts, of {total} passes")

    def test_whose_putting_back_is_refused_try_again(self):
        self.prepare()
        for errno in ("EIO", "EINVAL", "EBUSY"):
            with self.subTest(errno):
                self.park()
                self.fake.control("clear", f"fault times=3 skip=1 {FRACTION} write {errno}")
                self.ctl("drain", "--mode=squeeze", expect=None)
                self.assertEqual(self.fake.fraction(), 0)
        self.covered(3, "errnos, three refusals each")

    def test_go_on_while_cpus_and_zones_come_and_go(self):
        self.prepare()
        events = (
            "cpu 1 offline", "cpu 1 online", "cpu 2-3 offline", "cpu 2-3 online", "node 1 offline", "node 1 online",
            "zone 0:Normal -512M", "zone 0:Normal +512M",
        )
        for i, event in enumerate(events):
            with self.subTest(event):
                self.fake.control("drain", "park 0 0:Normal 60000", "clear", f"when {REFRESH} read {i % 3 + 1} {event}")
                done = self.ctl("drain", "--mode=squeeze", expect=None)
                self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
                self.assertIn("ended", done.stdout)
                self.assertEqual(self.fake.fraction(), 0, done.stdout)
        self.covered(len(events), "hotplug events")

    def test_blocked_ones_have_the_fraction_back_in_two_seconds_and_say_so(self):
        self.prepare()
        self.park()
        self.fake.control("spin 2", "reset")
        p = self.begin(env=safety.no_leak_detection())
        safety.gone(p)
        self.assertEqual(self.fake.fraction(), 0)
        times = [int(t) for t in re.findall(rf"^write (\d+) \d+ {FRACTION} ", self.fake.state(), re.M)]
        self.assertEqual(len(times), 2)
        self.assertLess((times[1] - times[0]) / 1e6, 6, "2 s of patience, and what a loaded machine takes")
        self.fake.control("unspin 2")
        self.assertIn("drain blocked", p.communicate(timeout=safety.PATIENCE)[0])
        self.covered(1, "CPU that never works")

    def test_are_paced_and_limited_in_time(self):
        self.prepare()
        self.fake.control("drain", "park 0 0:Normal 300000", f"fault {REFRESH} read block 0.2")
        begin = time.monotonic()
        report = self.ctl("--json", "drain", "--mode=squeeze", "--max-time=4s", expect=1).stdout
        self.assertIn('"max-time"', report)
        self.assertLess(time.monotonic() - begin, 30)
        self.assertLessEqual(int(re.search(r'"passes": (\d+)', report)[1]), 3, "a pause of nine times each pass")
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, "time limit")

    def test_show_progress_on_a_terminal_when_they_take_long(self):
        self.prepare()
        self.fake.control("drain", "park 0 0:Normal 300000", f"fault {REFRESH} read block 0.15")
        ours, theirs = pty.openpty()
        p = self.begin("--max-time=5s", stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        p.wait(timeout=safety.PATIENCE)
        text = os.read(ours, 65536).decode()
        os.close(ours)
        self.assertRegex(text, r"squeeze: pass \d+, .*still parked")
        self.covered(1, "terminal")

    def test_of_a_daemon_come_once_in_ten_minutes(self):
        self.prepare()
        self.fake.control("drain", "park 0 0:Normal 60000")
        trim = "[Policy]\nDescription=x\nPriority=1\n[Trim t]\nWhen=pcp.bytes > 1M\nFor=0s\nCooldown=1s\n"
        d = self.daemon({"t": trim}).ready()
        d.until_said("trim: parked before")
        self.fake.control("park 0 0:Normal 60000")
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 4)
        self.assertEqual(len(d.lines("giving parked pages back")), 1, d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(1, "rule that wants one every second")

    def test_wake_no_isolated_cpu_unless_asked_to(self):
        n = 0
        for option in ("--isolated=3", "--nohz-full=3"):
            with self.subTest(option):
                self.prepare("--cpus=4", "--release=6.18", option)
                self.fake.control("park 0 0:Normal 6000")
                done = self.ctl("drain", expect=None)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("--isolated-too", done.stderr)
                self.assertEqual(self.fake.number("passes"), 0)
                self.ctl("drain", "--isolated-too")
                n += 1
                self.stack.pop_all().close()
        self.covered(n, "ways to isolate")


if __name__ == "__main__":
    safety.main()
