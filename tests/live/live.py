# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests on the running kernel share.

They need root and a kernel with percpu_pagelist_high_fraction; without either they are skipped.
They take a lock, so that two of them never meet, and put the fraction back, whatever happens.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BUILD = pathlib.Path(os.environ.get("PCPTUNE_BUILD", "."))
SOURCE = pathlib.Path(os.environ.get("PCPTUNE_SOURCE", "."))
FRACTION = pathlib.Path("/proc/sys/vm/percpu_pagelist_high_fraction")
LOCK = "/run/lock/pcptune-live.lock"
PAGE = os.sysconf("SC_PAGE_SIZE")


def fraction():
    return int(FRACTION.read_text())


def pagesets():
    """Every pageset of /proc/zoneinfo: (node, zone, cpu) -> {name: value}. Reads line by line, by
    name, and shares nothing with the parser under test."""
    sets, zone, cpu = {}, None, None
    for line in pathlib.Path("/proc/zoneinfo").read_text().splitlines():
        if m := re.match(r"Node (\d+), zone\s+(\S+)", line):
            zone, cpu = (int(m[1]), m[2]), None
        elif m := re.match(r"\s+cpu: (\d+)$", line):
            cpu = int(m[1])
            sets[zone + (cpu,)] = {}
        elif (m := re.match(r"\s+(count|high|batch|high_min|high_max):\s+(\d+)$", line)) and cpu is not None:
            sets[zone + (cpu,)][m[1]] = int(m[2])
        elif not line.startswith(" "):
            cpu = None
    return sets


def parked_pages(cpu=None):
    return sum(p["count"] for key, p in pagesets().items() if cpu is None or key[2] == cpu)


def excess_pages(cpu=None):
    """What lists hold above their high_min."""
    return sum(
        max(0, p["count"] - p["high_min"])
        for key, p in pagesets().items()
        if cpu is None or key[2] == cpu
    )


def managed_pages():
    return sum(int(m) for m in re.findall(r"^\s+managed\s+(\d+)", pathlib.Path("/proc/zoneinfo").read_text(), re.M))


def cpus():
    return sorted(os.sched_getaffinity(0))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(what, condition, seconds=20, words=lambda: ""):
    """The truth of `condition` within `seconds`, or a failure that names `what` and gives `words`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"after {seconds} s it was still not so: {what}\n{words()}")


class Daemon:
    """pcptuned in the foreground with its own configuration and policies; its words are kept."""

    def __init__(self, policies, *options, config="", policy_dirs=None, port=None):
        self.dir = tempfile.TemporaryDirectory(prefix="pcptune-live-")
        top = pathlib.Path(self.dir.name)
        (top / "policies").mkdir()
        for name, text in policies.items():
            path = top / "policies" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.port = port or free_port()
        (top / "pcptuned.conf").write_text(
            f"[Daemon]\nIdleInterval=1s\n{config}\n"
            # the tests of one minute together write more often than a daemon should
            f"[Limits]\nWritesPerMinute=1000\nWritesPerDay=1000\n[Metrics]\nListen=127.0.0.1:{self.port}\n"
        )
        self.words = open(top / "words", "w+", encoding="utf-8")
        dirs = (policy_dirs or []) + [str(top / "policies")]
        self.process = subprocess.Popen(
            [BUILD / "pcptuned", f"--config={top}/pcptuned.conf"]
            + [f"--policy-dir={d}" for d in dirs]
            + list(options),
            stdout=self.words,
            stderr=subprocess.STDOUT,
        )

    def said(self):
        return pathlib.Path(self.words.name).read_text(encoding="utf-8")

    def wait_ready(self):
        wait_until(
            "pcptuned says enforcing or observing",
            lambda: re.search(r"(enforcing|observing):", self.said()) or self.process.poll() is not None,
        )
        if self.process.poll() is not None:
            raise AssertionError(f"pcptuned ended with {self.process.returncode}:\n{self.said()}")
        return self

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def metric(self, name):
        """The one value of a series: name{labels} as it is written in the text."""
        for line in self.metrics().splitlines():
            if line.rpartition(" ")[0] == name:
                return float(line.rpartition(" ")[2])
        return None

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"pcptuned did not end within 30 s of {how!r}:\n{self.said()}") from None

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.words.close()
        self.dir.cleanup()


def ctl(*arguments, check=True):
    done = subprocess.run([BUILD / "pcptunectl", *arguments], capture_output=True, text=True, timeout=120)
    if check and done.returncode != 0:
        raise AssertionError(f"pcptunectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def ctl_json(*arguments):
    return json.loads(ctl("--json", *arguments).stdout)


def park(mib, cpu):
    """Parks memory: a process pinned to `cpu` touches and frees `mib` MiB, and ends."""
    subprocess.run(
        [BUILD / "tests/park", f"--mib={mib}", f"--cpu={cpu}"],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=120,
    )


class LiveTest(unittest.TestCase):
    """Holds the lock and the fraction; `self.daemon(…)` starts a daemon that ends with the test."""

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        lock = self.stack.enter_context(open(LOCK, "a", encoding="ascii"))
        fcntl.flock(lock, fcntl.LOCK_EX)
        self.before = fraction()
        self.stack.callback(self.put_back)

    def put_back(self):
        for verb in (["adopt", "high_fraction"], ["rollback"]):
            subprocess.run([BUILD / "pcptunectl", *verb], capture_output=True, check=False)
        if fraction() != self.before:
            FRACTION.write_text(f"{self.before}\n")

    def daemon(self, *arguments, **named):
        daemon = Daemon(*arguments, **named)
        self.stack.callback(daemon.close)
        return daemon


def main():
    if not os.environ.get("PCPTUNE_LIVE"):
        print("skipped: this changes the running kernel's settings for a moment; sudo make check-live runs it")
        sys.exit(77)
    if os.geteuid() != 0:
        print("skipped: changing the kernel's settings needs root")
        sys.exit(77)
    if not FRACTION.exists() or not os.access(FRACTION, os.W_OK):
        print(f"skipped: {FRACTION} is not there or cannot be written")
        sys.exit(77)
    unittest.main(verbosity=2)
