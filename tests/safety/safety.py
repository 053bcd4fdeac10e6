# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the promises share: a fake kernel, the real programs on it, and the count of
what a test covered, from which doc/safety.md gets its table.

A test method belongs to a class with a `promise`, a number of doc/safety.md. It says with
self.covered(n, "kill points") how many cases it has been through.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ.get("PCPTUNE_BUILD", ".")).resolve()
FULL = os.environ.get("SAFETY_FULL") == "1"
FRACTION = "proc/sys/vm/percpu_pagelist_high_fraction"
REFRESH = "proc/sys/vm/stat_refresh"
SINGLE = "sys/kernel/mm/transparent_hugepage/pcp_allow_high_order"
LARGEST = 2147483647
PATIENCE = 180  # seconds; a slow read makes pcptuned tick less often, up to a thousand times as long
AT_ONCE = 2 * (os.cpu_count() or 1)  # fake kernels side by side: most of a run is waiting
covered = {}


def size_switch(size):
    return f"sys/kernel/mm/transparent_hugepage/hugepages-{size}kB/pcp_enabled"


def policy(value, knob="HighFraction x", more=""):
    """Sets it within a second of every start, and never takes it back by itself."""
    return (
        f"[Policy]\nDescription=For a test\nPriority=10\n[{knob}]\nWhen=machine.cpus >= 1\nFor=0s\n"
        f"Value={value}\nUntil=machine.cpus < 1\nUntilFor=1s\n{more}"
    )


def order_policy(order="*"):
    return (
        f"[Policy]\nDescription=For a test\nPriority=10\n[Order {order}]\nEnable=machine.cpus >= 1\n"
        "EnableFor=0s\nDisable=machine.cpus < 1\nDisableFor=0s\n"
    )


def wait_until(what, condition, seconds=PATIENCE, words=lambda: ""):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"after {seconds} s it was still not so: {what}\n{words()}")


class Fake:
    """A fake kernel on a directory of its own."""

    def __init__(self, *options):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="pcptune-safe-"))
        for sub in ("etc/pcptune/policies.d", "run", "usr/lib"):
            (self.dir / sub).mkdir(parents=True)
        self.process = subprocess.Popen(
            [BUILD / "tests/fakekernel/fakekernel", self.dir, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            status = self.process.wait()
            shutil.rmtree(self.dir, ignore_errors=True)
            if status == 77:
                raise unittest.SkipTest("no FUSE can be mounted here")
            raise AssertionError(f"the fake kernel does not start: {line}")

    def stop(self):
        with contextlib.suppress(OSError):
            (self.dir / "control").write_text("clear\nunspin all\n")
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def control(self, *commands):
        for command in commands:
            try:
                (self.dir / "control").write_text(command + "\n")
            except OSError as why:
                raise AssertionError(f'the fake kernel refuses "{command}": {why}; {self.state("last_error")}') from why

    def state(self, key=None):
        text = (self.dir / "control").read_text()
        if key is None:
            return text
        return next((l[len(key) + 1 :] for l in text.splitlines() if l.startswith(key + " ")), None)

    def number(self, key):
        return int(self.state(key))

    def read(self, rel):
        return (self.dir / rel).read_text().strip()

    def fraction(self):
        return self.number("fraction")  # as the kernel has it, whatever reading it may be made to say

    def foreign(self, value, rel=FRACTION):
        self.control(f"write {rel} {value}")

    def writes(self, rel=FRACTION):
        """What programs wrote to it: (result, text), the foreign ones of control not among them."""
        log = re.findall(r"^write \d+ (\d+) (\S+) (-?\d+) (.*)$", self.state(), re.M)
        return [(int(result), text) for pid, path, result, text in log if path == rel and pid != "0"]

    @property
    def record(self):
        return self.dir / "run/pcptune/record"


def no_leak_detection():
    """LeakSanitizer stops every thread at the end, and one that hangs in the kernel never stops."""
    was = os.environ.get("ASAN_OPTIONS", "")
    return {**os.environ, "ASAN_OPTIONS": f"{was}:detect_leaks=0".lstrip(":")}


def gone(process):
    """Ended, but for a thread that hangs in the kernel and keeps it from being waited for."""

    def state():
        try:
            return pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return "Z"

    wait_until("the process has ended", lambda: process.poll() is not None or state() in "ZX")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, fake, policies, *options, config="", limits="WritesPerMinute=1000\nWritesPerDay=1000", metrics="", before=(), hangs=False):
        self.fake = fake
        self.configure(policies, config, limits, metrics)
        self.path = fake.dir / f"words-{time.monotonic_ns()}"
        with open(self.path, "w", encoding="utf-8") as words:
            self.process = subprocess.Popen(
                [*before, BUILD / "pcptuned", f"--root={fake.dir}", "--enforce", *options],
                stdout=words,
                stderr=subprocess.STDOUT,
                env=no_leak_detection() if hangs else None,
            )

    def configure(self, policies, config="", limits="WritesPerMinute=1000\nWritesPerDay=1000", metrics=""):
        etc = self.fake.dir / "etc/pcptune"
        shutil.rmtree(etc / "policies.d")
        (etc / "policies.d").mkdir()
        for name, text in policies.items():
            (etc / "policies.d" / f"{name}.policy").write_text(text)
        (etc / "pcptuned.conf").write_text(
            f"[Daemon]\nIdleInterval=1s\n{'' if 'MinHold' in config else 'MinHold=0'}\n{config}\n[Limits]\n{limits}\n"
            f"[Metrics]\nListen={'' if metrics == '' else '127.0.0.1:0 '}{self.fake.dir}/run/metrics\n{metrics}\n"
        )

    def said(self):
        return self.path.read_text(encoding="utf-8")

    def lines(self, pattern):
        return [l for l in self.said().splitlines() if re.search(pattern, l)]

    def until_said(self, pattern, seconds=PATIENCE):
        return wait_until(f"pcptuned says /{pattern}/", lambda: self.lines(pattern), seconds, self.said)

    def ready(self):
        wait_until(
            "pcptuned has started",
            lambda: re.search("enforcing:|observing:", self.said()) or self.process.poll() is not None,
            words=self.said,
        )
        if self.process.poll() is not None:
            raise AssertionError(f"pcptuned ended with {self.process.returncode}:\n{self.said()}")
        return self

    def metrics(self):
        connection = UnixConnection(self.fake.dir / "run/metrics")
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            return connection.getresponse().read().decode()

    def metric(self, name):
        for line in self.metrics().splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        return None

    def ticks(self):
        return self.metric("pcptune_ticks_total")

    def send(self, how):
        self.process.send_signal(how)
        return self

    def wait(self, seconds=PATIENCE):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"pcptuned has not ended after {seconds} s:\n{self.said()}") from None

    def stop(self, how=signal.SIGTERM):
        return self.send(how).wait()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.fake.control("clear", "unspin all")
            self.process.wait()


class SafetyTest(unittest.TestCase):
    promise = 0

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def start_fake(self, *options):
        self.fake = Fake(*(options or ("--cpus=2", "--release=6.18")))
        self.stack.callback(self.fake.stop)
        return self.fake

    def daemon(self, policies, *options, **named):
        d = Daemon(self.fake, policies, *options, **named)
        self.stack.callback(d.close)
        return d

    def enforcing(self, value=100, *options, **named):
        """A daemon that has set the fraction to `value`."""
        d = self.daemon({"p": policy(value)}, *options, **named).ready()
        wait_until(f"the fraction is {value}", lambda: self.fake.fraction() == value, words=d.said)
        d.until_said(f"-> {value}|has {value} from an earlier run")
        return d

    def recorded(self):
        try:
            return self.fake.record.read_text()
        except FileNotFoundError:
            return ""

    def ctl(self, *arguments, expect=0, before=()):
        done = subprocess.run(
            [*before, BUILD / "pcptunectl", f"--root={self.fake.dir}", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if expect is not None:
            self.assertEqual(done.returncode, expect, f"pcptunectl {arguments}:\n{done.stdout}{done.stderr}")
        return done

    def ctl_json(self, *arguments):
        return json.loads(self.ctl("--json", *arguments).stdout)

    def covered(self, n, what):
        covered[self.id().partition(".")[2] if self.id().startswith("__main__.") else self.id()] = (self.promise, n, what)


def side_by_side(make, cases, each):
    """each(scene, case) for every case, on scenes by make() that run at once; the sum of what it gives.

    A scene is a SafetyTest of its own, since it has a fake kernel of its own."""

    def share(k):
        scene = make()
        scene.setUp()
        try:
            return sum(each(scene, case) for case in cases[k::AT_ONCE])
        finally:
            scene.doCleanups()

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(share, range(min(AT_ONCE, len(cases)))))


def can_trace():
    killat = BUILD / "tests/killpoint/killat"
    return killat.exists() and subprocess.run([killat, "--count", "true"], capture_output=True, check=False).returncode == 0


class TellAtOnce(unittest.TextTestResult):
    """Why a test fails, when it does: a run may be cut short."""

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.stream.writeln(self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.stream.writeln(self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.stream.writeln(f"{subtest}:\n{self._exc_info_to_string(err, test)}")


def keep_covered(result):
    """NAME.covered in the build directory: what each test covered when it last passed."""
    name = pathlib.Path(sys.argv[0]).stem
    path = BUILD / f"tests/safety/{name}.covered"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = {}
    if path.exists():
        lines = {line.split("\t")[1]: line for line in path.read_text(encoding="utf-8").splitlines()}
    for test, _ in result.failures + result.errors:
        lines.pop(f"{name}.py {test.id().partition('.')[2]}", None)
    for test, (promise, n, what) in covered.items():
        lines[f"{name}.py {test}"] = f"{promise}\t{name}.py {test}\t{n}\t{what}"
    path.write_text("".join(line + "\n" for _, line in sorted(lines.items())), encoding="utf-8")


def main():
    """Runs the tests of the calling file."""
    if not os.environ.get("PCPTUNE_SAFETY"):
        print("skipped: this takes minutes; sudo make check-safety runs it")
        sys.exit(77)
    fake = BUILD / "tests/fakekernel/fakekernel"
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not fake.exists():
        print("skipped: the fake kernel needs root, /dev/fuse and libfuse3")
        sys.exit(77)
    program = unittest.main(exit=False, testRunner=unittest.TextTestRunner(verbosity=2, resultclass=TellAtOnce))
    keep_covered(program.result)
    for test, (p, n, what) in sorted(covered.items()):
        print(f"covered {p}: {test}: {n} {what}")
    if program.result.testsRun == len(program.result.skipped):
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
