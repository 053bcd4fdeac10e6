#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The control bus and the verbs that go through it, on the fake kernel: right, wrong, and under attack."""

import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
SOURCE = pathlib.Path(os.environ.get("PCPTUNE_SOURCE", pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(SOURCE / "tests/safety"))

import safety  # noqa: E402
from safety import BUILD, FRACTION, REFRESH, policy, wait_until  # noqa: E402

NOBODY = 65534
# memory that is freed, and kept by the sanitizer for a while, is not the daemon's
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
ORDERS = ("--cpus=4", "--nodes=2", "--orders=per-size", "--release=6.18")


class BusTest(safety.SafetyTest):
    def start(self, policies=None, *options, config="", fake=("--cpus=2", "--release=6.18")):
        self.start_fake(*fake)
        return self.daemon(policies or {}, *options, config=config).ready()

    def says(self, expect, pattern, *arguments):
        done = self.ctl(*arguments, expect=expect)
        self.assertRegex(done.stdout + done.stderr, pattern)
        return done

    @property
    def bus(self):
        return self.fake.dir / "run/pcptune/bus"

    def busctl(self, *arguments):
        return subprocess.run(
            ["busctl", f"--address=unix:path={self.bus}", *arguments], capture_output=True, text=True, timeout=60, check=False
        )


class Pins(BusTest):
    def test_set_the_value_above_every_policy_and_give_it_back(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        self.says(0, "pinned to 200; it has 200, read back", "pin", "high_fraction", "200")
        self.assertEqual(self.fake.fraction(), 200)
        self.assertEqual(json.loads(self.ctl("--json", "pin", "high_fraction", "300", "--for=1h").stdout)["value"], 300)
        self.says(0, "no longer pinned", "unpin", "high_fraction")
        wait_until("the policy has its value again", lambda: self.fake.fraction() == 100, words=d.said)

    def test_survive_a_restart_and_expire_on_time(self):
        d = self.start(config="OnStop=keep")
        self.ctl("pin", "high_fraction", "200", "--for=8s")
        begin = time.monotonic()
        self.assertEqual(d.stop(signal.SIGTERM), 0)
        d = self.daemon({}, config="OnStop=keep").ready()
        self.says(0, "pinned", "status")
        self.assertEqual(self.fake.fraction(), 200)
        wait_until("the pin has expired", lambda: self.fake.fraction() == 0, words=d.said)
        self.assertGreater(time.monotonic() - begin, 7)

    def test_hold_within_the_limits_only(self):
        self.start_fake()
        d = self.daemon({}, limits="HighFractionMin=50\nWritesPerMinute=100").ready()
        self.says(0, r"it has 50 by \[Limits\]", "pin", "high_fraction", "8")
        self.assertEqual(self.fake.fraction(), 50, d.said())

    def test_of_an_order_are_0_or_1(self):
        self.start(fake=ORDERS)
        self.says(0, "it has 1, read back", "pin", "pcp_enabled/64kB", "1")
        self.assertEqual(self.fake.read(safety.size_switch(64)), "1")
        self.says(2, "takes 0 or 1", "pin", "pcp_enabled/64kB", "4")
        self.says(0, "it has 0, read back", "pin", "pcp_enabled/64kB", "0", "--for=1h")
        self.assertEqual(self.fake.read(safety.size_switch(64)), "0")

    def test_say_what_is_wrong(self):
        self.start()
        self.says(2, 'did you mean "high_fraction"', "pin", "high_fractoin", "100")
        self.says(2, "8 to 2147483647", "pin", "high_fraction", "5")
        self.says(2, "whole number", "pin", "high_fraction", "2%")
        self.says(2, "--for takes a time", "pin", "high_fraction", "100", "--for=soon")
        self.says(1, "is not pinned", "unpin", "high_fraction")
        self.assertEqual(self.fake.fraction(), 0)

    def test_are_refused_while_the_daemon_only_observes(self):
        self.start_fake()
        self.daemon({}, config="Mode=observe\n")  # --enforce stands above it
        self.stack.pop_all().close()
        self.start_fake()
        d = safety.Daemon(self.fake, {}, "--observe")
        self.stack.callback(d.close)
        d.ready()
        self.says(1, "only observes.*Mode=enforce", "pin", "high_fraction", "100")
        self.assertEqual(self.fake.fraction(), 0)

    def test_end_with_4_where_the_kernel_refuses(self):
        self.start()
        self.fake.control(f"fault {FRACTION} write EIO")
        self.says(4, "stays pinned and is tried again", "pin", "high_fraction", "100")
        self.fake.control("clear")
        wait_until("it is in place after all", lambda: self.fake.fraction() == 100)

    def test_wait_for_a_foreign_knob_to_be_adopted(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        self.fake.foreign(77)
        d.until_said("another program|somebody else|foreign")
        self.says(1, "adopt high_fraction first", "pin", "high_fraction", "200")
        self.says(0, "77 is the baseline now", "adopt", "high_fraction")
        self.says(0, "200, read back", "pin", "high_fraction", "200")
        self.says(0, "200 -> 77, read back", "rollback")
        self.says(1, "is not foreign", "adopt", "high_fraction")


class Pauses(BusTest):
    def test_keep_values_as_they_are_across_a_restart(self):
        d = self.start(config="OnStop=keep")
        self.says(0, "until .pcptunectl resume", "pause")
        d.configure({"p": policy(100)}, config="OnStop=keep")
        self.says(0, "Read again", "reload")
        self.assertEqual(d.stop(), 0)
        d = self.daemon({"p": policy(100)}, config="OnStop=keep").ready()
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 2)
        self.assertEqual(self.fake.fraction(), 0, "paused, also after a restart")
        self.says(0, "paused", "status")
        self.says(1, "resume first", "pin", "high_fraction", "100")
        self.says(0, "decide again", "resume")
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)

    def test_hold_back_what_the_kernel_refused_before(self):
        self.start_fake()
        d = self.daemon({"p": policy(100)})
        self.fake.control(f"fault {FRACTION} write EIO")
        d.ready().until_said("refuse|Input/output error")
        self.says(0, "Paused", "pause")
        self.fake.control("clear", "reset")
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 4)
        self.assertEqual((self.fake.fraction(), self.fake.writes()), (0, []), d.said())
        self.says(0, "decide again", "resume")
        wait_until("it is tried again", lambda: self.fake.fraction() == 100, words=d.said)

    def test_end_by_themselves(self):
        d = self.start({"p": policy(100)})
        self.says(0, "Paused for 3s", "pause", "--for=3s")
        self.assertTrue(json.loads(self.ctl("--json", "status").stdout)["daemon"]["paused"])
        d.until_said("resumed.*time being over")

    def test_come_with_a_rollback(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        done = json.loads(self.ctl("--json", "rollback").stdout)
        self.assertEqual(done["restored"], [{"knob": "high_fraction", "from": 100, "to": 0}])
        ticks = d.ticks()
        wait_until("ticks pass", lambda: d.ticks() > ticks + 2)
        self.assertEqual(self.fake.fraction(), 0)
        self.says(0, "decide again", "resume")
        wait_until("the policy decides again", lambda: self.fake.fraction() == 100, words=d.said)


class Drains(BusTest):
    def park(self):
        self.fake.control("idle 0-1", "park 0 0:Normal 60000")

    def test_are_done_by_the_daemon_and_reported_whole(self):
        d = self.start()
        self.park()
        direct = {"mode", "end", "before", "after", "passes", "zones", "blocked", "seconds"}
        done = json.loads(self.ctl("--json", "drain", "--mode=squeeze").stdout)
        self.assertLessEqual(direct, set(done))
        self.assertEqual(done["end"], "floor", done)
        self.assertEqual(done["before"], 60000)
        self.assertEqual(self.fake.fraction(), 0)
        self.assertTrue(d.lines("squeeze: parked before"))

    def test_work_while_it_only_observes(self):
        self.start_fake()
        d = safety.Daemon(self.fake, {}, "--observe")
        self.stack.callback(d.close)
        d.ready()
        self.park()
        self.says(0, "after", "drain")
        self.assertLess(self.fake.number("parked_pages"), 60000)

    def test_go_on_when_who_asked_has_gone(self):
        d = self.start()
        self.park()
        self.fake.control(f"fault {REFRESH} read block 0.1")
        p = subprocess.Popen([BUILD / "pcptunectl", f"--root={self.fake.dir}", "drain"], stdout=subprocess.DEVNULL)
        d.until_said("giving parked pages back")
        p.kill()
        p.wait()
        self.fake.control("clear")
        d.until_said("trim: parked before")
        self.says(0, "pcptuned runs", "status")

    def test_tell_that_the_daemon_died(self):
        d = self.start()
        self.park()
        self.fake.control(f"fault {REFRESH} read block 0.3")
        p = subprocess.Popen(
            [BUILD / "pcptunectl", f"--root={self.fake.dir}", "drain", "--mode=squeeze"], stderr=subprocess.PIPE, text=True
        )
        d.until_said("giving parked pages back")
        d.send(signal.SIGKILL)
        words = p.communicate(timeout=safety.PATIENCE)[1]
        self.assertEqual(p.returncode, 1, words)
        self.assertIn("before it answered", words)
        self.fake.control("clear")
        self.ctl("rollback")
        self.assertEqual(self.fake.fraction(), 0)

    def test_end_with_a_daemon_that_is_stopped_meanwhile(self):
        d = self.start()
        self.park()
        self.fake.control(f"fault {REFRESH} read block 0.3")
        p = subprocess.Popen(
            [BUILD / "pcptunectl", f"--root={self.fake.dir}", "drain", "--mode=squeeze"], stderr=subprocess.PIPE, text=True
        )
        d.until_said("giving parked pages back")
        self.assertEqual(d.stop(), 0, d.said())
        self.assertIn("stopping", p.communicate(timeout=safety.PATIENCE)[1])
        self.assertEqual(p.returncode, 1)
        self.assertEqual(self.fake.fraction(), 0)

    def test_are_one_at_a_time(self):
        d = self.start()
        self.park()
        self.fake.control(f"fault {REFRESH} read block 0.2")
        p = subprocess.Popen([BUILD / "pcptunectl", f"--root={self.fake.dir}", "drain"], stdout=subprocess.DEVNULL)
        self.stack.callback(p.wait)
        d.until_said("giving parked pages back")
        self.says(1, "a drain is under way", "drain")
        self.fake.control("clear")


class Without(BusTest):
    def test_a_daemon_the_verbs_for_one_say_so(self):
        self.start_fake()
        self.says(3, "none runs that could be asked", "history")
        for words in (("pin", "high_fraction", "8"), ("unpin", "high_fraction"), ("pause",), ("resume",), ("reload",)):
            with self.subTest(words):
                self.says(3, "no pcptuned runs here.*systemctl start", *words)

    def test_being_root_one_may_read_and_change_nothing(self):
        self.start()
        self.fake.dir.chmod(0o711)
        own = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        ask = ["busctl", f"--address=unix:path={self.bus}"]
        read = subprocess.run(
            [*ask, "get-property", "org.pcptune1", "/org/pcptune1", "org.pcptune1.Manager", "Mode"],
            capture_output=True, text=True, check=False, **own,
        )
        self.assertEqual(read.stdout.strip(), 's "enforce"', read.stderr)
        for method in (("Pin", "stt", "high_fraction", "100", "0"), ("Rollback",), ("Reload",), ("Drain", "sbbt", "trim", "0", "0", "0")):
            with self.subTest(method):
                change = subprocess.run(
                    [*ask, "call", "org.pcptune1", "/org/pcptune1", "org.pcptune1.Manager", *method],
                    capture_output=True, text=True, check=False, **own,
                )
                self.assertNotEqual(change.returncode, 0)
                self.assertIn("Access denied", change.stderr)
        self.assertEqual(self.fake.fraction(), 0)


class Reloads(BusTest):
    def test_with_an_error_fail_and_change_nothing(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        d.configure({"p": policy(200)}, config="Interval=nonsense")
        self.says(1, "pcptuned.conf", "reload")
        self.assertEqual(self.fake.fraction(), 100)
        d.configure({"p": policy(200)})
        self.says(0, "Read again", "reload")
        wait_until("the new value is there", lambda: self.fake.fraction() == 200, words=d.said)


class Interface(BusTest):
    def test_is_what_its_manual_page_says(self):
        self.start(fake=ORDERS)
        page = (SOURCE / "doc/org.pcptune1.5").read_text(encoding="utf-8").replace("\\\n", "")
        there = set()
        for path in ("/org/pcptune1", "/org/pcptune1/knob/high_5ffraction"):
            text = self.busctl("introspect", "--xml-interface", "org.pcptune1", path).stdout
            for interface in xml.etree.ElementTree.fromstring(text).iter("interface"):
                if not interface.get("name").startswith("org.pcptune1."):
                    continue
                for p in interface.iter("property"):
                    there.add(f"{p.get('name')} {p.get('type')}")
                for m in interface.iter("method"):
                    arguments = ", ".join(
                        f"{a.get('direction')} {a.get('type')} {a.get('name')}" for a in m.iter("arg")
                    )
                    there.add(f"{m.get('name')} {arguments}".strip())
                self.assertFalse(list(interface.iter("signal")), "the page says there are none")
        told = {re.sub(r"\s+", " ", " ".join(x)).strip() for x in re.findall(r"^\.It Sy (\w+) Pq ?(.*)$", page, re.M)}
        self.assertEqual(told, there)
        errors = set(re.findall(r'BUS_ERROR "(\w+)"', (SOURCE / "daemon/bus/objects.c").read_text(encoding="utf-8")))
        self.assertEqual(set(re.findall(r"org\.pcptune1\.Error\.(\w+)", page)), errors)
        actions = set(re.findall(r'id="(org\.pcptune1\.\w+)"', (SOURCE / "units/org.pcptune1.policy").read_text(encoding="utf-8")))
        self.assertEqual(set(re.findall(r"^\.(?:Pq|Sy) (org\.pcptune1\.[a-z]+)", page, re.M)), actions)

    def test_tells_of_changes(self):
        self.start()
        with Client(self.bus) as c:
            c.hello()
            self.ctl("pin", "high_fraction", "100")
            heard = c.read_until(b"PropertiesChanged")
            self.assertIn(b"org.pcptune1.Knob", heard)

    def test_history_comes_from_the_daemon_where_there_is_no_journal(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        self.ctl("pin", "high_fraction", "200")
        self.says(0, "high_fraction: 0 -> 100, done(.|\n)*high_fraction: 100 -> 200, done", "history")
        last = json.loads(self.ctl("--json", "history", "-n", "1").stdout)["history"]
        self.assertEqual([(e["knob"], e["from"], e["to"]) for e in last], [("high_fraction", 100, 200)])
        self.says(2, "8h", "history", "--since=soon")
        self.says(2, "-n needs a value", "history", "-n")
        self.assertEqual(json.loads(self.ctl("--json", "history", "--since=2000-01-01").stdout)["history"][-1]["to"], 200)

    def test_explains_and_remembers_what_the_daemon_decided(self):
        d = self.start({"p": policy(100)})
        wait_until("the policy has its value", lambda: self.fake.fraction() == 100, words=d.said)
        call = ("call", "org.pcptune1", "/org/pcptune1", "org.pcptune1.Manager")
        self.assertIn("has the knob", self.busctl(*call, "Explain", "s", "high_fraction").stdout)
        self.assertRegex(self.busctl(*call, "History", "u", "5").stdout, '"high_fraction" 0 100 "p"')
        self.assertNotEqual(self.busctl(*call, "Explain", "s", "nothing").returncode, 0)


def message(member, body=b"", signature="", serial=1, length=None):
    """A method call in D-Bus' wire format, little-endian."""

    def field(code, kind, text):
        data = text.encode() + b"\0"
        size = struct.pack("<I" if kind in "so" else "<B", len(data) - 1)
        return struct.pack("<BB2s", code, 1, kind.encode() + b"\0") + size + data

    fields = b""
    for code, kind, text in ((1, "o", "/org/pcptune1"), (2, "s", "org.pcptune1.Manager"), (3, "s", member), (8, "g", signature)):
        if code == 8 and not text:
            continue
        fields += b"\0" * (-len(fields) % 8) + field(code, kind, text)
    head = struct.pack("<cBBBIII", b"l", 1, 0, 1, len(body) if length is None else length, serial, len(fields)) + fields
    return head + b"\0" * (-len(head) % 8) + body


class Client:
    """The client's side of a connection, byte by byte."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.socket.settimeout(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def hello(self):
        self.socket.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\n")
        self.read_until(b"OK ")
        self.socket.sendall(b"BEGIN\r\n")
        self.socket.sendall(message("History", struct.pack("<I", 0), "u"))
        return self.read_until(b"a(tsttssss)")

    def read_until(self, what):
        heard = b""
        while what not in heard:
            piece = self.socket.recv(65536)
            if not piece:
                raise AssertionError(f"the connection was closed after {heard!r}")
            heard += piece
        return heard

    def closed_within(self, seconds):
        self.socket.settimeout(seconds)
        with contextlib.suppress(ConnectionError):
            while self.socket.recv(65536):
                pass
        return True


class Attacks(BusTest):
    def resident(self, d):
        status = pathlib.Path(f"/proc/{d.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def goes_on(self, d, before):
        ticks = d.ticks()
        wait_until("ticks go on", lambda: d.ticks() > ticks + 1, words=d.said)
        self.ctl("pause", "--for=1s")
        self.assertLess(self.resident(d) - before, 16 << 10, "KiB")

    def test_by_many_connections_leave_room_for_others(self):
        d = self.start()
        before = self.resident(d)
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(self.bus)) for _ in range(3)]
            for c in clients:
                c.hello()
            self.goes_on(d, before)
            for _ in range(300):
                with contextlib.suppress(OSError, AssertionError), Client(self.bus) as c:
                    c.socket.sendall(b"\0AUTH")
            extra = [stack.enter_context(Client(self.bus)) for _ in range(30)]
            self.assertTrue(all(c.closed_within(30) for c in extra[4:]), "beyond four of a user they are closed at once")

    def test_by_many_users_leave_root_its_places(self):
        d = self.start()
        before = self.resident(d)
        if os.geteuid() != 0:
            self.skipTest("only root can be several users")
        for directory in (self.fake.dir, self.fake.dir / "run"):
            directory.chmod(0o755)
        holder = (
            "import os, socket, sys\n"
            "os.setuid(int(sys.argv[1]))\n"
            "held = [socket.socket(socket.AF_UNIX) for _ in range(4)]\n"
            "for s in held: s.connect(sys.argv[2])\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()\n"
        )
        with contextlib.ExitStack() as stack:
            for uid in range(60001, 60005):
                p = stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", holder, str(uid), str(self.bus)],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        text=True,
                    )
                )
                self.assertEqual(p.stdout.readline(), "held\n")
            self.goes_on(d, before)

    def test_by_half_messages_and_silence_are_ended(self):
        d = self.start()
        before = self.resident(d)
        with Client(self.bus) as silent, Client(self.bus) as half, Client(self.bus) as slow:
            half.hello()
            half.socket.sendall(message("Status", b"", "ay", length=100 << 20)[:40])
            slow.hello()
            slow.socket.sendall(message("Status", b"", "ay", length=100 << 20))
            end = time.monotonic() + 25
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < end:
                    slow.socket.sendall(b"x")
                    time.sleep(0.2)
                self.fail("who sends a byte at a time is served for ever")
            self.assertTrue(silent.closed_within(30) and half.closed_within(30))
        self.goes_on(d, before)

    def test_by_endless_messages_take_no_memory(self):
        d = self.start()
        before = self.resident(d)
        with Client(self.bus) as c:
            c.hello()
            with contextlib.suppress(ConnectionError):
                c.socket.sendall(message("Status", b"", "ay", length=100 << 20))
                for _ in range(1600):
                    c.socket.sendall(b"x" * 65536)
                self.fail("a hundred MiB were taken")
        self.goes_on(d, before)

    def test_by_who_asks_and_never_listens_take_no_memory(self):
        d = self.start()
        before = self.resident(d)
        with Client(self.bus) as c:
            c.hello()
            with contextlib.suppress(ConnectionError, TimeoutError):
                for i in range(200000):
                    c.socket.sendall(message("Status", serial=i + 2))
        self.goes_on(d, before)

    def test_by_a_burst_of_questions_take_no_memory(self):
        d = self.start()
        before = self.resident(d)
        burst = b"".join(message("Status", serial=i + 2) for i in range(1500))
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(Client(self.bus)) for _ in range(3)]
            for c in clients:
                c.hello()
                c.socket.setblocking(False)
                with contextlib.suppress(OSError):
                    c.socket.send(burst)
            most = 0
            end = time.monotonic() + 4
            while time.monotonic() < end:
                most = max(most, self.resident(d))
                time.sleep(0.05)
            self.assertLess(most - before, 16 << 10, "KiB, while nobody listens to the answers")
        self.goes_on(d, before)

    def test_by_silence_and_deafness_do_not_hold_up_the_end(self):
        d = self.start()
        with Client(self.bus) as silent, Client(self.bus) as deaf:
            deaf.hello()
            # as many answers as are kept for one that may still come to listen
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            for i in range(40):
                with contextlib.suppress(OSError):
                    deaf.socket.send(message("Status", serial=i + 2), socket.MSG_DONTWAIT)
            self.goes_on(d, self.resident(d))
            silent.socket.sendall(b"\0AUTH")
            d.send(signal.SIGTERM)
            wait_until("it has ended", lambda: d.process.poll() is not None, 30, d.said)
        self.assertEqual(d.process.returncode, 0)
        self.assertFalse(self.bus.exists())

    def test_by_noise_are_harmless(self):
        d = self.start()
        before = self.resident(d)
        seed = message("Pin", b"\x0d\0\0\0high_fraction\0" + b"\0" * 6 + struct.pack("<QQ", 100, 0), "stt")
        state = 12345
        for _ in range(120):
            noise = bytearray(seed)
            for _ in range(4):
                state = (state * 1103515245 + 12345) % (1 << 31)
                noise[(state >> 8) % len(noise)] ^= 1 << (state >> 4) % 8
            with contextlib.suppress(OSError, AssertionError), Client(self.bus) as c:
                c.hello()
                c.socket.sendall(bytes(noise))
        self.goes_on(d, before)


if __name__ == "__main__":
    safety.main()
