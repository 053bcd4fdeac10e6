#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pcptuned on the running kernel: it changes the real fraction, tells it, and puts it back."""

import pathlib
import re
import signal
import subprocess
import time

import live

# Turns on within a second of every start, and never off by itself.
ALWAYS = """
[Policy]
Description=A fixed fraction, for a test
Priority=10
[HighFraction fixed]
When=machine.cpus >= 1
For=0s
Value=100
Until=machine.cpus < 1
UntilFor=1s
Drain=no
"""


class ADaemonThatEnforces(live.LiveTest):
    def start(self, *options, **named):
        daemon = self.daemon({"fixed.policy": ALWAYS}, "--enforce", *options, **named).wait_ready()
        live.wait_until("the fraction is 100", lambda: live.fraction() == 100, words=daemon.said)
        return daemon

    def test_changes_the_fraction_and_restores_it_when_told_to_terminate(self):
        daemon = self.start()
        live.wait_until("the metric shows it", lambda: daemon.metric('pcptune_knob_value{knob="high_fraction"}') == 100)
        lines = [l for l in daemon.said().splitlines() if re.search(r"high_fraction.*0 -> 100", l)]
        self.assertEqual(len(lines), 1, f"one line with the change:\n{daemon.said()}")
        self.assertIn("fixed/fixed", lines[0], "the line names policy and rule")
        for key, p in live.pagesets().items():
            self.assertEqual(p["high_min"], p["high_max"], f"{key}: the lists have a fixed size")
        self.assertEqual(daemon.stop(signal.SIGTERM), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before)

    def test_restores_it_when_interrupted(self):
        daemon = self.start()
        self.assertEqual(daemon.stop(signal.SIGINT), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before)

    def test_ends_by_itself_after_the_time_it_was_given(self):
        daemon = self.start("--for=2s")
        self.assertEqual(daemon.process.wait(timeout=20), 0)
        self.assertEqual(live.fraction(), self.before)

    def test_leaves_a_record_when_killed_and_rollback_puts_the_fraction_back(self):
        daemon = self.start()
        daemon.stop(signal.SIGKILL)
        self.assertEqual(live.fraction(), 100, "nobody could put it back")
        self.assertIn("high_fraction", live.ctl("rollback", "--dry-run").stdout)
        live.ctl("rollback")
        self.assertEqual(live.fraction(), self.before)

    def test_takes_over_what_a_killed_one_left_and_ends_at_the_true_baseline(self):
        self.start().stop(signal.SIGKILL)
        daemon = self.start()
        self.assertEqual(daemon.stop(), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before)

    def test_keeps_its_hands_off_a_value_that_somebody_else_wrote(self):
        daemon = self.start()
        live.FRACTION.write_text("200\n")
        live.wait_until("it says so", lambda: "200" in daemon.said())
        time.sleep(3)
        self.assertEqual(live.fraction(), 200)
        self.assertEqual(daemon.stop(), 0, daemon.said())
        self.assertEqual(live.fraction(), 200, "a foreign value is not ours to put back")
        again = self.daemon({"fixed.policy": ALWAYS}, "--enforce").wait_ready()
        time.sleep(3)
        self.assertEqual(live.fraction(), 200, "nor is it after a restart")
        self.assertEqual(again.stop(), 0, again.said())
        live.ctl("adopt", "high_fraction")
        third = self.start()
        self.assertEqual(third.stop(), 0, third.said())
        self.assertEqual(live.fraction(), 200, "adopted, the value is the baseline")

    def test_refuses_a_second_start_and_names_the_first(self):
        daemon = self.start()
        second = self.daemon({"fixed.policy": ALWAYS}, "--enforce")
        self.assertEqual(second.process.wait(timeout=20), 1)
        self.assertIn(str(daemon.process.pid), second.said())

    def test_does_itself_what_is_asked_by_hand_while_it_runs(self):
        daemon = self.start()
        live.ctl("drain", "--mode=squeeze")
        self.assertIn("squeeze: giving parked pages back (by hand)", daemon.said())
        self.assertEqual(live.fraction(), 100, "a squeeze puts the daemon's own value back")
        live.ctl("pin", "high_fraction", "200")
        self.assertEqual(live.fraction(), 200)
        live.ctl("unpin", "high_fraction")
        self.assertEqual(live.fraction(), 100)
        live.ctl("rollback")
        self.assertEqual(live.fraction(), self.before)
        time.sleep(3)
        self.assertEqual(live.fraction(), self.before, "a rollback pauses")
        self.assertTrue(live.ctl_json("status")["daemon"]["paused"])
        live.ctl("resume")
        self.assertFalse(live.ctl_json("status")["daemon"]["paused"])
        self.assertEqual(daemon.stop(), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before)

    def test_shows_in_status_what_it_changed_and_why(self):
        self.start()
        text = live.wait_until("status shows the policy", lambda: (s := live.ctl("status").stdout) and "fixed" in s and s)
        self.assertIn("high_fraction", text)
        knob = live.ctl_json("status")["knobs"][0]
        self.assertEqual((knob["value"], knob["baseline"]), (100, self.before))

    def test_says_which_port_is_taken(self):
        first = self.start()
        first_port = first.port
        first.stop()
        import socket

        with socket.socket() as s:
            s.bind(("127.0.0.1", first_port))
            s.listen()
            second = self.daemon({"fixed.policy": ALWAYS}, "--enforce", port=first_port)
            self.assertEqual(second.process.wait(timeout=20), 1)
            self.assertIn(f"127.0.0.1:{first_port}", second.said())
            self.assertIn("Listen=", second.said())
        self.assertEqual(live.fraction(), self.before)


class ADaemonThatObserves(live.LiveTest):
    def test_tells_what_it_would_do_and_writes_nothing(self):
        daemon = self.daemon({"fixed.policy": ALWAYS}, "--observe").wait_ready()
        live.wait_until("it tells the decision", lambda: "would change high_fraction" in daemon.said())
        time.sleep(2)
        self.assertEqual(live.fraction(), self.before)
        self.assertEqual(daemon.stop(), 0)

    def test_decides_once_and_ends(self):
        daemon = self.daemon({"fixed.policy": ALWAYS}, "--once")
        self.assertEqual(daemon.process.wait(timeout=20), 0, daemon.said())
        self.assertIn("would change high_fraction", daemon.said())
        self.assertEqual(live.fraction(), self.before)


class WhatParks(live.LiveTest):
    def test_shows_in_pcp_status_and_metrics_as_zoneinfo_has_it(self):
        cpu = live.cpus()[-1]
        daemon = self.daemon({}, "--observe").wait_ready()
        live.park(512, cpu)
        # pages move while we look: a reading counts when zoneinfo agrees before and after it
        for _ in range(20):
            before = live.parked_pages()
            shown = sum(p["count"] for p in live.ctl_json("pcp")["pcp"])
            status = live.ctl_json("status")["parked"]["pages"]
            time.sleep(1.1)  # a scrape of a snapshot younger than a second is that snapshot
            metric = daemon.metric("pcptune_pcp_parked_bytes") / live.PAGE
            after = live.parked_pages()
            low, high = min(before, after), max(before, after)
            slack = 256 * len(live.cpus()) + (high - low)
            if all(low - slack <= v <= high + slack for v in (shown, status, metric)):
                self.assertGreater(shown, 10000, "the load parked next to nothing")
                return
        self.fail(f"zoneinfo {before} to {after}, pcp {shown}, status {status}, metrics {metric}")

    def test_promtool_has_no_complaint_about_the_metrics(self):
        daemon = self.daemon({}, "--observe").wait_ready()
        try:
            done = subprocess.run(
                ["promtool", "check", "metrics"], input=daemon.metrics(), capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            self.skipTest("promtool is not installed")
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


if __name__ == "__main__":
    assert pathlib.Path(live.__file__).exists()
    live.main()
