#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds whatever the kernel and others do to a knob: the record, stopping, foreign writes,
refusals, blocked writes, limits, orders, the ledger."""

import os
import re
import signal
import subprocess
import time

import safety
from safety import FRACTION, LARGEST, SINGLE, order_policy, policy, size_switch, wait_until

ERRNOS = ("EIO", "EACCES", "EROFS", "ENOENT", "EINVAL", "EBUSY", "EPERM")
KEEP = "OnStop=keep"
BLOCKED = 60  # seconds


class ARecordThatCannotBeBelieved(safety.SafetyTest):
    promise = 1

    def left_behind(self):
        self.start_fake()
        self.enforcing(100).stop(signal.SIGKILL)
        return self.fake.record.read_bytes()

    def refused(self, why, words):
        """Neither program writes, and each says `words`."""
        self.fake.control("reset")
        d = self.daemon({"p": policy(200)})
        self.assertEqual(d.wait(), 1, f"{why}: {d.said()}")
        self.assertRegex(d.said(), words, why)
        done = self.ctl("rollback", expect=None)
        self.assertNotEqual(done.returncode, 0, why)
        self.assertRegex(done.stderr, words, why)
        self.ctl("drain", "--mode=squeeze", expect=None)
        self.assertEqual(self.fake.fraction(), 100, why)
        self.assertEqual(self.fake.writes(), [], f"{why}: the kernel is left alone")

    def test_is_refused_when_damaged_empty_or_newer(self):
        good = self.left_behind()
        cases = {
            "empty": (b"", "empty|damaged"),
            "cut off": (good[:-5], "damaged|cut off"),
            "cut in half": (good[: len(good) // 2], "damaged|cut off"),
            "one digit changed": (good.replace(b"100", b"101", 1), "damaged"),
            "a line too many": (good + b"x\n", "damaged"),
            "zeros": (bytes(len(good)), "damaged|not"),
            "newer": (re.sub(rb"\A([^\n]*?)\d+\n", rb"\g<1>9\n", good), "newer"),
        }
        for why, (text, words) in cases.items():
            with self.subTest(why):
                self.fake.record.write_bytes(text)
                self.refused(why, words)
        self.fake.record.write_bytes(good)
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0, "the good one still leads back")
        self.covered(len(cases), "records that are refused")

    def test_is_refused_when_others_could_have_written_it(self):
        good = self.left_behind()
        record = self.fake.record

        def link():
            os.rename(record, str(record) + ".x")
            os.symlink(str(record) + ".x", record)

        cases = {
            "of another user": lambda: os.chown(record, 4711, 0),
            "writable for the group": lambda: os.chmod(record, 0o664),
            "writable for all": lambda: os.chmod(record, 0o646),
            "in a directory of another user": lambda: os.chown(record.parent, 4711, 0),
            "in a directory writable for all": lambda: os.chmod(record.parent, 0o777),
            "a link": link,
            "a directory": lambda: (record.unlink(), record.mkdir()),
        }
        for why, spoil in cases.items():
            with self.subTest(why):
                spoil()
                self.refused(why, "record|run/pcptune")
                subprocess.run(["rm", "-rf", record], check=True)
                os.chown(record.parent, 0, 0)
                os.chmod(record.parent, 0o755)
                record.write_bytes(good)
                record.chmod(0o644)
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(len(cases), "owners, modes and kinds that are refused")

    def test_of_an_earlier_boot_means_nothing(self):
        self.left_behind()
        self.fake.control("reboot", "reset")
        self.assertIn("Nothing to put back", self.ctl("rollback").stdout)
        self.assertEqual(self.fake.writes(), [])
        self.covered(1, "reboot")

    def test_leads_a_kept_value_back_to_the_true_baseline(self):
        self.start_fake()
        self.fake.foreign(50)
        for value in (100, 200, 300):
            self.assertEqual(self.enforcing(value, config=KEEP).stop(), 0)
            self.assertEqual(self.fake.fraction(), value, "kept")
        d = self.enforcing(400)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 50, "the baseline is what was there before the first of them")
        self.covered(4, "starts in a row")


class Stopping(safety.SafetyTest):
    promise = 2

    def test_restores_or_keeps_as_configured(self):
        self.start_fake()
        ways = {
            "SIGTERM": lambda d: d.send(signal.SIGTERM),
            "SIGINT": lambda d: d.send(signal.SIGINT),
            "--for": lambda d: None,
        }
        for config, ends_with in (("OnStop=restore", 0), (KEEP, 100)):
            for name, how in ways.items():
                with self.subTest(f"{config} {name}"):
                    d = self.enforcing(100, *(["--for=2s"] if name == "--for" else []), config=config)
                    how(d)
                    self.assertEqual(d.wait(), 0, d.said())
                    self.assertEqual(self.fake.fraction(), ends_with)
                    self.ctl("rollback")
                    self.assertEqual(self.fake.fraction(), 0)
        self.covered(6, "ways to end")

    def test_tries_a_refused_restore_again_and_ends_with_an_error(self):
        for errno in ERRNOS:
            with self.subTest(errno):
                self.start_fake()
                d = self.enforcing(100, config="StopTimeout=2s")
                self.fake.control(f"fault {FRACTION} write {errno}", "reset")
                self.assertEqual(d.stop(), 4, d.said())
                self.assertRegex(d.said(), "could not be put back.*pcptunectl rollback")
                self.assertGreater(len(self.fake.writes()), 2, "it is tried again and again")
                self.assertEqual(self.fake.fraction(), 100)
                self.assertEqual(self.ctl("rollback", expect=None).returncode if errno == "EIO" else 4, 4)
                self.fake.control("clear")
                self.ctl("rollback")
                self.assertEqual(self.fake.fraction(), 0, "the record still leads back")
                self.stack.pop_all().close()
        self.covered(len(ERRNOS), "errnos of a refused restore")

    def test_waits_for_a_restore_that_is_refused_for_a_while(self):
        self.start_fake()
        d = self.enforcing(100)
        self.fake.control(f"fault times=4 {FRACTION} write EIO")
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(4, "refusals before the restore")

    def blocked_at_the_end(self):
        self.start_fake()
        d = self.enforcing(100, config="StopTimeout=2s", hangs=True)
        self.fake.control(f"fault times=1 {FRACTION} write block forever")
        safety.gone(d.send(signal.SIGTERM).process)
        self.assertRegex(d.said(), "could not be put back")
        return d

    def test_leaves_a_blocked_restore_to_a_rollback_that_waits_for_it(self):
        blocked = self.blocked_at_the_end()
        rollback = subprocess.Popen(
            [safety.BUILD / "pcptunectl", f"--root={self.fake.dir}", "rollback"], stdout=subprocess.DEVNULL
        )
        time.sleep(BLOCKED)
        self.assertIsNone(rollback.poll(), "it waits for the write that hangs")
        self.fake.control("clear")
        self.assertEqual(rollback.wait(timeout=safety.PATIENCE), 0)
        self.assertEqual(blocked.wait(), 4, "the daemon had ended with an error")
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, f"rollback after a stop that was blocked for {BLOCKED} s")

    def test_leaves_a_blocked_restore_to_the_next_start(self):
        self.blocked_at_the_end()
        d = self.daemon({}).ready()
        time.sleep(BLOCKED)
        self.assertIsNone(d.process.poll(), "it waits for the write that hangs")
        self.fake.control("clear")
        wait_until("the write that hung is through", lambda: self.fake.fraction() == 0, words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, f"start after a stop that was blocked for {BLOCKED} s")

    def test_a_change_killed_while_it_hung_cannot_come_late(self):
        self.start_fake()
        self.fake.control(f"fault times=1 {FRACTION} write block forever")
        d = self.daemon({"p": policy(100)}).ready()
        wait_until("the write hangs", lambda: self.fake.number("blocked") == 1, words=d.said)
        safety.gone(d.send(signal.SIGKILL).process)
        again = self.daemon({"p": policy(200)}).ready()
        time.sleep(1)
        self.fake.control("clear")
        wait_until("the new decision is in place", lambda: self.fake.fraction() == 200, words=again.said)
        self.assertEqual(again.stop(), 0, again.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, "killed with a write in the kernel")


class ForeignWrites(safety.SafetyTest):
    promise = 3

    def test_are_seen_told_once_with_both_values_and_left_alone_until_adopted(self):
        self.start_fake()
        d = self.enforcing(100)
        ticks = d.ticks()
        self.fake.control(f"write {FRACTION} 50", "reset")
        d.until_said("somebody else")
        self.assertLessEqual(d.ticks() - ticks, 3, "within a tick (and what the look takes)")
        wait_until("more ticks pass", lambda: d.ticks() > ticks + 4)
        lines = d.lines("somebody else")
        self.assertEqual(len(lines), 1, d.said())
        self.assertRegex(lines[0], "50.*100|100.*50")
        self.assertEqual((self.fake.fraction(), self.fake.writes()), (50, []))
        self.assertEqual(d.stop(), 0)
        self.assertEqual(self.fake.fraction(), 50, "not ours to put back")
        self.ctl("adopt", "high_fraction")
        self.assertEqual(self.enforcing(100).stop(), 0)
        self.assertEqual(self.fake.fraction(), 50, "the adopted value is the baseline")
        self.covered(1, "foreign write")

    def test_end_our_writing_when_two_tuners_fight(self):
        self.start_fake()
        d = self.enforcing(100)
        self.fake.control("reset", f"every 0.3 write {FRACTION} 70", f"every 0.5 write {FRACTION} 80")
        d.until_said("somebody else")
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 5)
        self.fake.control("cancel")
        self.assertLessEqual(len(self.fake.writes()), 1, "never more than one write against another tuner")
        self.assertEqual(len(d.lines("somebody else")), 1, d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(1, "fight over five ticks")

    def test_are_yielded_to_for_the_time_that_is_configured(self):
        self.start_fake()
        d = self.enforcing(100, config="Foreign=yield-for 4s")
        self.fake.control(f"write {FRACTION} 50")
        d.until_said("somebody else")
        wait_until("it is ours again", lambda: self.fake.fraction() == 100, words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 50, "what they had left is the baseline")
        self.covered(1, "yield-for")

    def test_are_not_what_text_is_that_is_cut_off(self):
        self.start_fake()
        d = self.enforcing(100)
        for cut in (0, 1, 2, 3):
            ticks = d.ticks()
            self.fake.control(f"fault {FRACTION} read cut {cut}")
            wait_until("ticks pass", lambda: d.ticks() > ticks + 2)
            self.fake.control("clear")
            self.assertFalse(d.lines("somebody else"), d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0, "it is still ours to put back")
        self.covered(4, "places where a number is cut off")

    def test_to_each_kind_of_knob_are_seen(self):
        for options, rel, ours, theirs in (
            (("--orders=per-size",), size_switch(64), "1", "0"),
            (("--orders=single",), SINGLE, "4", "0"),
        ):
            with self.subTest(rel):
                self.start_fake("--cpus=2", "--release=6.18", *options)
                d = self.daemon({"o": order_policy("64kB" if "pcp_enabled" in rel else "4")}).ready()
                wait_until("the order is on", lambda: self.fake.read(rel) == ours, words=d.said)
                d.until_said("-> 1")
                self.fake.control(f"write {rel} {theirs}", "reset")
                d.until_said("somebody else")
                self.assertEqual(self.fake.writes(rel), [])
                self.assertEqual(d.stop(), 0, d.said())
                self.assertEqual(self.fake.read(rel), theirs)
                self.stack.pop_all().close()
        self.covered(2, "order switches")


class Refusals(safety.SafetyTest):
    promise = 4

    def test_show_in_status_as_long_as_they_last(self):
        self.start_fake()
        self.fake.control(f"fault {FRACTION} write EIO")
        d = self.daemon({"p": policy(100)}).ready()
        wait_until("status says so", lambda: "failed" in self.ctl("status").stdout, words=d.said)
        self.fake.control("clear")
        wait_until("it is accepted", lambda: self.fake.fraction() == 100, words=d.said)
        wait_until("status says no more", lambda: "failed" not in self.ctl("status").stdout, words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(1, "refusal that lasts")

    def test_are_not_what_an_interrupted_call_is(self):
        self.start_fake()
        for op in ("write", "read"):
            self.fake.control(f"fault times=3 {FRACTION} {op} EINTR")
        d = self.enforcing(100)
        self.assertFalse(d.lines("cannot"), d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(2, "interrupted calls")

    def test_are_told_once_when_they_start_and_once_when_they_end(self):
        for errno in ERRNOS:
            with self.subTest(errno):
                self.start_fake("--cpus=2", "--release=6.18", "--orders=per-size")
                self.fake.control(f"fault times=2 {FRACTION} write {errno}")
                d = self.daemon({"p": policy(100), "o": order_policy("64kB")}).ready()
                start = d.until_said("cannot write 100")
                wait_until("the other knob goes on", lambda: self.fake.read(size_switch(64)) == "1", words=d.said)
                wait_until("it is accepted", lambda: self.fake.fraction() == 100, words=d.said)
                d.until_said("takes it again")
                self.assertEqual(len(d.lines("cannot write 100")), 1, d.said())
                self.assertEqual(len(d.lines("takes it again")), 1, d.said())
                self.assertEqual(len(start), 1)
                self.assertGreaterEqual(d.metric('pcptune_writes_total{result="refused"}'), 2)
                times = re.findall(rf"^write (\d+) \d+ {FRACTION} -?\d+ ", self.fake.state(), re.M)
                self.assertEqual(len(times), 3, "two refused, one taken")
                first, second, third = map(int, times)
                self.assertGreater(third - second, (second - first) * 1.3, "the pauses grow")
                self.assertEqual(d.stop(), 0, d.said())
                self.assertEqual(self.fake.fraction(), 0)
                self.stack.pop_all().close()
        self.covered(len(ERRNOS), "errnos")

    def test_of_a_value_that_does_not_stick_or_cannot_be_read_back(self):
        cases = ("write drop", "read EIO", "read EACCES")
        for fault in cases:
            with self.subTest(fault):
                self.start_fake()
                d = self.daemon({"p": policy(100)}).ready()
                wait_until("it is in place", lambda: self.fake.fraction() == 100, words=d.said)
                d.until_said("-> 100")
                self.fake.control(f"fault {FRACTION} {fault}")
                d.configure({"p": policy(200)})
                d.send(signal.SIGHUP)
                ticks = d.ticks()
                wait_until("ticks pass", lambda: d.ticks() > ticks + 3)
                self.assertIn(self.fake.fraction(), (100, 200))
                self.fake.control("clear")
                wait_until("it is in place at last", lambda: self.fake.fraction() == 200, words=d.said)
                self.assertEqual(d.stop(), 0, d.said())
                self.assertEqual(self.fake.fraction(), 0)
                self.stack.pop_all().close()
        self.covered(len(cases), "faults after the write")


class ABlockedWrite(safety.SafetyTest):
    promise = 5

    def test_stops_nothing_else_and_the_next_decision_waits(self):
        self.start_fake("--cpus=2", "--release=6.18", "--orders=per-size")
        self.fake.control(f"fault times=1 {FRACTION} write block forever")
        d = self.daemon({"p": policy(100)}).ready()
        d.until_said("has not returned")
        ticks = d.ticks()
        d.configure({"p": policy(200), "o": order_policy("64kB")})
        d.send(signal.SIGHUP)
        wait_until("another knob is changed", lambda: self.fake.read(size_switch(64)) == "1", words=d.said)
        wait_until("ticks go on, and scrapes", lambda: d.ticks() > ticks + 3)
        wait_until("status says so", lambda: "has not returned" in self.ctl("--json", "status").stdout)
        self.assertEqual(len(self.fake.writes()), 0, "the second decision waits")
        self.fake.control("clear")
        wait_until("the newest decision is carried out", lambda: self.fake.fraction() == 200, words=d.said)
        self.assertEqual(len(d.lines("has not returned")), 1, d.said())
        self.assertEqual(len(d.lines("write that hung has returned")), 1, d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, "write that hangs")

    def test_by_memory_hotplug_ends_with_it(self):
        self.start_fake()
        d = self.daemon({}).ready()
        self.fake.control("offline-memory 0:Normal 128M 4")
        d.configure({"p": policy(100)})
        d.send(signal.SIGHUP)
        d.until_said("has not returned")
        wait_until("it goes through", lambda: self.fake.fraction() == 100, words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(1, "offlined memory block")

    def test_pass_shows_as_drain_blocked_and_the_fraction_is_back(self):
        self.start_fake()
        self.fake.control("idle 0-1", "park 0 0:Normal 30000", "spin 1")
        squeeze = "[Policy]\nDescription=x\nPriority=1\n[Trim t]\nWhen=pcp.bytes > 1M\nFor=0s\nSqueeze=yes\n"
        d = self.daemon({"t": squeeze}).ready()
        d.until_said("drain blocked")
        wait_until("the fraction is back", lambda: self.fake.fraction() == 0, words=d.said)
        since = re.findall(rf"^write (\d+) \d+ {FRACTION} \d+ (\d+)", self.fake.state(), re.M)
        self.assertEqual(since[0][1], str(LARGEST), since)
        ticks = d.ticks()
        wait_until("ticks go on, and scrapes", lambda: d.ticks() > ticks + 2)
        self.assertEqual(d.metric("pcptune_drain_blocked"), 1)
        wait_until("status says so", lambda: "drain blocked" in self.ctl("status").stdout)
        # two seconds of patience with the pass, and as much for both writes and the machine
        self.assertLess((int(since[1][0]) - int(since[0][0])) / 1e6, 6)
        self.fake.control("unspin 1")
        wait_until("the metric ends", lambda: d.metric("pcptune_drain_blocked") == 0, words=d.said)
        self.assertEqual(len(d.lines("drain blocked:.*has not come back")), 1, d.said())
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(1, "pass that hangs")

    def test_pass_of_a_daemon_that_is_stopped_does_not_hold_it_up(self):
        self.start_fake()
        self.fake.control("idle 0-1", "park 0 0:Normal 30000", "spin 1")
        squeeze = "[Policy]\nDescription=x\nPriority=1\n[Trim t]\nWhen=pcp.bytes > 1M\nFor=0s\nSqueeze=yes\n"
        d = self.daemon({"t": squeeze}, hangs=True).ready()
        wait_until("it squeezes", lambda: self.fake.fraction() == LARGEST, words=d.said)
        safety.gone(d.send(signal.SIGTERM).process)
        self.assertEqual(self.fake.fraction(), 0)
        self.fake.control("unspin 1")
        self.assertEqual(d.wait(), 0, d.said())
        self.covered(1, "stop with a pass that hangs")


class Limits(safety.SafetyTest):
    promise = 6

    def flipping(self, n):
        """n policies, another of which wins whenever the rate is another."""
        return {
            f"p{i:03}": (
                f"[Policy]\nDescription=x\nPriority={i % 90 + 1}\n[HighFraction x]\n"
                f"When=rate(vmstat.pgfault) > {i % 30}/s\nFor=0s\nValue={100 + i}\n"
                f"Until=rate(vmstat.pgfault) < {i % 30}/s\nUntilFor=0s\nDrain=no\n"
            )
            for i in range(n)
        }

    def test_hold_with_a_hundred_policies_that_disagree_across_reloads_and_restarts(self):
        self.start_fake()
        self.fake.control("rate vmstat.pgfault 4", "every 2 count vmstat.pgfault 20", "every 3 count vmstat.pgfault 9")
        limits = "WritesPerMinute=3\nWritesPerDay=1000"
        end, restarts = time.monotonic() + 75, 0  # so that the first writes are a minute ago
        while time.monotonic() < end:
            d = self.daemon(self.flipping(100), config=KEEP, limits=limits).ready()
            ticks = d.ticks()
            wait_until("ticks pass", lambda: d.ticks() > ticks + 2, words=d.said)
            d.configure(self.flipping(100 - restarts), config=KEEP, limits=limits)
            d.send(signal.SIGHUP)
            wait_until("ticks pass", lambda: d.ticks() > ticks + 4, words=d.said)
            d.stop(signal.SIGKILL if restarts % 2 else signal.SIGTERM)
            restarts += 1
        times = [int(t) for t in re.findall(rf"^write (\d+) \d+ {FRACTION} ", self.fake.state(), re.M)]
        for t in times:
            self.assertLessEqual(sum(t <= u < t + 60_000_000 for u in times), 3, times)
        self.assertGreater(len(times), 3, f"the limit is reached, kept, and ends with its minute\n{d.said()}")
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0)
        self.covered(100, f"policies, {restarts} restarts and as many reloads")

    def test_a_day_holds_across_restarts(self):
        self.start_fake()
        written = []
        for value in (100, 200, 300, 400):
            d = self.daemon({"p": policy(value)}, config=KEEP, limits="WritesPerDay=2").ready()
            ticks = d.ticks()
            wait_until("ticks pass", lambda: d.ticks() > ticks + 2, words=d.said)
            written.append(self.fake.fraction())
            self.assertEqual(len(d.lines("WritesPerDay=2")), value > 200, d.said())
            self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(written, [100, 200, 200, 200])
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0, "putting back is never limited")
        self.covered(4, "starts")

    def test_min_hold_holds_between_two_changes(self):
        self.start_fake()
        d = self.enforcing(100, config="MinHold=6s")
        d.configure({"p": policy(200)}, config="MinHold=6s")
        d.send(signal.SIGHUP)
        wait_until("the second change comes", lambda: self.fake.fraction() == 200, words=d.said)
        times = [int(t) for t in re.findall(rf"^write (\d+) \d+ {FRACTION} ", self.fake.state(), re.M)]
        self.assertGreaterEqual(times[1] - times[0], 5_900_000, times)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual(self.fake.fraction(), 0, "a restore waits for nothing")
        self.covered(1, "reload that changes the decision")

    def test_kill_switches_restore_then_observe(self):
        self.start_fake()
        d = self.enforcing(100)
        switch = self.fake.dir / "etc/pcptune/disabled"
        switch.touch()
        wait_until("it is put back", lambda: self.fake.fraction() == 0, words=d.said)
        d.until_said("would change")
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 2)
        self.assertEqual(self.fake.fraction(), 0)
        switch.unlink()
        wait_until("it enforces again", lambda: self.fake.fraction() == 100, words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.stack.pop_all().close()
        self.start_fake("--cpus=2", "--release=6.18", "--cmdline=quiet pcptune=off")
        d = self.daemon({"p": policy(100)}).ready()
        d.until_said("would change")
        self.assertEqual((self.fake.fraction(), self.fake.writes()), (0, []))
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(2, "kill switches")


class Orders(safety.SafetyTest):
    promise = 7

    def switches(self):
        return sorted(
            int(re.search(r"hugepages-(\d+)kB", str(p))[1]) for p in self.fake.dir.glob(size_switch("*"))
        )

    def enabled(self):
        """But for the PMD order, which is always on."""
        return [kb for kb in self.switches()[:-1] if self.fake.read(size_switch(kb)) == "1"]

    def test_are_found_in_each_of_the_three_situations(self):
        for orders in ("per-size", "single", "none"):
            with self.subTest(orders):
                self.start_fake("--cpus=2", "--release=6.18", f"--orders={orders}")
                d = self.daemon({"o": order_policy("*")}).ready()
                if orders == "per-size":
                    wait_until("every order that can be is on", lambda: 64 in self.enabled(), words=d.said)
                elif orders == "single":
                    wait_until("order 4 is on", lambda: self.fake.read(SINGLE) == "4", words=d.said)
                else:
                    ticks = d.ticks()
                    wait_until("ticks pass", lambda: d.ticks() > ticks + 2, words=d.said)
                    self.assertFalse(d.lines("cannot|refuse"), d.said())
                    self.assertNotRegex(self.fake.state(), r"(?m)^write .*(hugepage|fraction)")
                self.assertEqual(d.stop(), 0, d.said())
                if orders != "none":
                    self.assertEqual(self.fake.number("orders_on") & 0x1F0, 0, "put back")
                self.stack.pop_all().close()
        self.covered(3, "interfaces")

    def test_that_come_and_go_while_the_daemon_runs_are_followed(self):
        self.start_fake("--cpus=2", "--orders=per-size", "--release=6.18")
        gone = size_switch(64)
        self.fake.control(f"fault {gone} open ENOENT", f"fault {gone} read ENOENT")
        d = self.daemon({"p": order_policy()}).ready()
        other = size_switch(128)
        wait_until("the orders that are there go on", lambda: self.fake.read(other) == "1", words=d.said)
        self.fake.control("clear")
        wait_until("the one that came goes on, too", lambda: self.fake.read(gone) == "1", words=d.said)
        self.assertEqual(d.stop(), 0, d.said())
        self.assertEqual((self.fake.read(gone), self.fake.read(other)), ("0", "0"))
        self.covered(1, "order that comes while the daemon runs")

    def test_never_go_on_where_they_do_not_fit(self):
        cases = {"0:Normal:64M": 2, "0:Normal:1G": 2, "0:DMA:15M,0:DMA32:3G,Normal:4G": 2, "Normal:16G": 8}
        for zones, cpus in cases.items():
            with self.subTest(zones):
                self.start_fake(
                    f"--cpus={cpus}", "--release=6.18", "--orders=per-size", f"--zones={zones}"
                )
                d = self.enforcing(2000)
                d.configure({"o": order_policy("*"), "p": policy(2000)})
                d.send(signal.SIGHUP)
                ticks = d.ticks()
                wait_until("ticks pass", lambda: d.ticks() > ticks + 3, words=d.said)
                for kb in self.enabled():
                    text = (self.fake.dir / "proc/zoneinfo").read_text()
                    high = max(map(int, re.findall(r"high_max:\s+(\d+)", text)))
                    self.assertLessEqual(kb // 4, high, f"{kb} kB on lists of {high} pages\n{d.said()}")
                self.assertEqual(d.stop(), 0, d.said())
                self.stack.pop_all().close()
        self.covered(len(cases), "zone layouts")

    def test_that_go_off_leave_nothing_on_the_lists_even_after_a_race(self):
        self.start_fake("--cpus=2", "--release=6.18", "--orders=single")
        self.fake.control(f"write {SINGLE} 4")
        off = "[Policy]\nDescription=x\nPriority=1\n[Order 4]\nEnable=machine.cpus < 1\nEnableFor=0s\n" \
              "Disable=machine.cpus >= 1\nDisableFor=0s\n"
        on = self.daemon({"o": order_policy("4")}).ready()
        self.assertEqual(on.stop(), 0)
        self.fake.control(f"write {SINGLE} 0")
        d = self.daemon({"o": order_policy("4")}).ready()
        wait_until("order 4 is on", lambda: self.fake.read(SINGLE) == "4", words=d.said)
        d.until_said("-> 1")
        self.fake.control("idle 0-1", "park 0 0:Normal 256 4", "race 5", "reset")
        d.configure({"o": off})
        d.send(signal.SIGHUP)
        wait_until("it is off", lambda: self.fake.read(SINGLE) == "0", words=d.said)
        wait_until("what the race left is gone", lambda: self.fake.number("parked_pages") == 0, words=lambda: d.said() + self.fake.state())
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(1, "race between drain and store")

    def test_that_go_off_tell_how_many_pages_came_back(self):
        # where the kernel does not count orders one by one, what came back of all orders
        for orders, file, came_back in (("per-size", size_switch(64), 1600), ("single", SINGLE, 1900)):
            with self.subTest(orders):
                self.start_fake("--cpus=2", "--release=6.18", f"--orders={orders}")
                d = self.daemon({"o": order_policy("4")}).ready()
                wait_until("order 4 is on", lambda f=file: self.fake.read(f) != "0", words=d.said)
                d.until_said("-> 1")
                self.assertEqual(d.metric("pcptune_drained_bytes_total"), 0, d.said())
                self.fake.control("idle 0-1", "park 0 0:Normal 1600 64kB", "park 1 0:Normal 300 0")
                d.configure({"o": order_policy("4").replace(">= 1", "< 1", 1).replace("Disable=machine.cpus < 1", "Disable=machine.cpus >= 1")})
                d.send(signal.SIGHUP)
                d.until_said(f"1 -> 0, {came_back} pages came back from the lists")
                self.assertEqual(self.fake.number("parked_pages"), 0)
                wait_until(
                    "the metric says the same",
                    lambda n=came_back: d.metric("pcptune_drained_bytes_total") == n * 4096,
                    words=lambda: d.metrics() + d.said(),
                )
                self.assertEqual(d.stop(), 0, d.said())
                self.stack.pop_all().close()
        self.covered(2, "order switches")


class TheLedger(safety.SafetyTest):
    promise = 9

    def test_what_rollback_would_do_undoes_everything(self):
        n = 0
        for orders in ("per-size", "single"):
            for before in (0, 50):
                with self.subTest(f"{orders}, {before}"):
                    self.start_fake("--cpus=2", "--release=6.18", f"--orders={orders}")
                    self.fake.foreign(before)
                    clean = self.knobs()
                    d = self.enforcing(100)
                    d.configure({"p": policy(100), "o": order_policy("*")})
                    d.send(signal.SIGHUP)
                    wait_until("orders are on, too", lambda: self.knobs() != clean | {FRACTION: "100"}, words=d.said)
                    ticks = d.ticks()
                    wait_until("all is written", lambda: d.ticks() > ticks + 2)
                    d.stop(signal.SIGKILL)
                    text = self.ctl("rollback", "--dry-run").stdout
                    self.assertNotEqual(self.knobs(), clean, "--dry-run writes nothing")
                    subprocess.run(["sh", "-e", "-c", text], check=True)
                    self.assertEqual(self.knobs(), clean, text)
                    n += len(re.findall("^echo ", text, re.M))
                    self.assertIn("# ", self.ctl("rollback", "--dry-run").stdout)
                    self.stack.pop_all().close()
        self.covered(n, "commands that undo")

    def knobs(self):
        paths = [FRACTION, SINGLE] + [str(p.relative_to(self.fake.dir)) for p in self.fake.dir.glob(size_switch("*"))]
        return {p: self.fake.read(p) for p in paths if (self.fake.dir / p).exists()}

    def test_tells_every_write_and_stays_bounded(self):
        self.start_fake()
        d = self.enforcing(100)
        resident = lambda: int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{d.process.pid}/status").read())[1])
        descriptors = lambda: len(os.listdir(f"/proc/{d.process.pid}/fd"))
        n, first, opened = 15, None, None
        for i in range(n):
            value = 101 + i
            d.configure({"p": policy(value)})
            d.send(signal.SIGHUP)
            wait_until(f"{value} is in place", lambda v=value: self.fake.fraction() == v, words=d.said)
            d.until_said(f"-> {value}")
            first, opened = first or resident(), opened or descriptors()
        for i in range(n):
            self.assertEqual(len(d.lines(f"high_fraction.*{100 + i} -> {101 + i}.*p/x")), 1, d.said())
        wait_until("no descriptor more is open", lambda: descriptors() <= opened + 1)
        self.assertLess(resident(), first + 32768, "kB: sanitizers keep what was freed for a while")
        self.assertEqual(d.stop(), 0, d.said())
        self.covered(n, "writes, each with one line")


if __name__ == "__main__":
    safety.main()
