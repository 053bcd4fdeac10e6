#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the shipped trim-under-pressure policy is worth on the running kernel, against a control.

A process pinned to one CPU parks memory there and ends; another one takes memory until the policy's
condition is true (its thresholds are lowered by a drop-in). With the policy the parked pages come
back within seconds; without it they are still parked after the same time.
"""

import contextlib
import mmap
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import live

PARK_MIB = 512
WITHIN = 4  # seconds in which the pages must be back, and after which the control is looked at
TAKE_SHARE = 0.25  # of memory, by the load that makes memory "short"


def free_ratio_of_worst_zone():
    """Free pages of managed ones in the zone that has least, zones below 1% of memory left out."""
    text = pathlib.Path("/proc/zoneinfo").read_text()
    zones = re.findall(r"pages free\s+(\d+).*?managed\s+(\d+)", text, re.S)
    total = sum(int(managed) for _, managed in zones)
    return min(int(free) / int(managed) for free, managed in zones if int(managed) > total / 100)


@contextlib.contextmanager
def memory_taken(share):
    """Another process holds this share of memory, on the first CPU."""
    size = int(live.managed_pages() * share) * live.PAGE
    code = (
        "import mmap,os,sys\n"
        f"os.sched_setaffinity(0,{{{live.cpus()[0]}}})\n"
        f"m=mmap.mmap(-1,{size},flags=mmap.MAP_PRIVATE|mmap.MAP_ANONYMOUS|mmap.MAP_POPULATE)\n"
        "print('taken',flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        p.stdout.readline()
        try:
            yield
        finally:
            p.stdin.close()
            p.wait()


def fault_loop(seconds, cpu):
    """Page faults a second of a loop pinned to `cpu`."""
    done = subprocess.run(
        [live.BUILD / "tests/park", "--faults", f"--seconds={seconds}", f"--cpu={cpu}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(re.search(r"([\d.]+) faults a second", done.stdout)[1])


class TheShippedPolicy(live.LiveTest):
    def policies(self, threshold):
        """A drop-in that lowers the thresholds of trim-under-pressure to what this test can reach."""
        return {
            "trim-under-pressure.policy.d/test.conf": f"[Trim idle]\n"
            f"When=zone.free_ratio < {threshold:.4f} and pcp.excess > 0.1%\nFor=1s\n"
        }

    def start(self, threshold):
        return self.daemon(
            self.policies(threshold), "--enforce", policy_dirs=[str(live.SOURCE / "policies")]
        ).wait_ready()

    def trims(self, daemon):
        return daemon.metric("pcptune_drains_total")

    def park(self):
        """Parks on the last CPU; the pages above high_min there."""
        cpu = live.cpus()[-1]
        for _ in range(8):  # somebody else on that CPU may take the pages at once
            live.park(PARK_MIB, cpu)
            parked = live.excess_pages(cpu)
            if parked > 20000:
                return cpu, parked
        raise AssertionError(f"the load parked too little to judge by: {parked} pages")

    def test_returns_parked_pages_when_memory_is_short_and_without_it_they_stay(self):
        # Whatever else runs on that CPU takes its pages from the same list: the control counts when
        # next to nothing did.
        for _ in range(8):
            cpu, parked = self.park()
            with memory_taken(TAKE_SHARE):
                time.sleep(WITHIN)
                control = live.excess_pages(cpu)
            if control > parked / 4:
                break
        self.assertGreater(control, parked / 4, "without the policy the pages are still parked")

        # The threshold lies between the free ratio without and with the load.
        daemon = self.start(free_ratio_of_worst_zone() - TAKE_SHARE / 2)
        cpu, parked_again = self.park()
        self.assertEqual(self.trims(daemon), 0, "memory is not short yet, so nothing was trimmed")
        with memory_taken(TAKE_SHARE):
            live.wait_until(
                f"of {parked_again} pages above high_min a tenth at most is still parked\n{daemon.said()}",
                lambda: live.excess_pages(cpu) < parked_again / 10,
                WITHIN,
            )
        live.wait_until("the trim is counted", lambda: self.trims(daemon) == 1)
        self.assertIn("trim-under-pressure", daemon.said())
        print(
            f"parked above high_min on CPU {cpu}: {parked} pages, {control} after {WITHIN} s without the "
            f"policy; {parked_again} pages, at most a tenth of them after {WITHIN} s with it",
            file=sys.stderr,
        )
        self.assertEqual(daemon.stop(), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before, "a trim leaves the fraction alone")

    def test_does_not_slow_faults_on_another_cpu_beyond_what_two_control_runs_differ(self):
        """The loop runs on the first CPU while the last one's list is trimmed. Rounds of control and
        policy alternate, so that what the machine does besides falls on both."""
        threshold = 1.0  # memory counts as short all the time
        for attempt in range(3):
            control, policy = [], []
            for _ in range(4):
                self.park()
                control.append(fault_loop(2, live.cpus()[0]))
                self.park()
                daemon = self.start(threshold)
                policy.append(fault_loop(2, live.cpus()[0]))
                live.wait_until("the list was trimmed meanwhile", lambda: self.trims(daemon) == 1)
                self.assertEqual(daemon.stop(), 0, daemon.said())
            # what differs by less than 3% cannot be told apart in runs as short as these
            noise = max(max(control) - min(control), 0.03 * statistics.median(control))
            print(
                f"faults a second: control {statistics.median(control):.0f} (noise {noise:.0f}), "
                f"with the policy {statistics.median(policy):.0f}",
                file=sys.stderr,
            )
            if statistics.median(policy) >= statistics.median(control) - noise:
                return
        self.fail(f"three times slower than noise explains: control {control}, policy {policy}")


def memory_cgroup():
    """A directory in which memory cgroups can be made, and the name of the limit's file."""
    for top, limit in (
        (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (pathlib.Path("/sys/fs/cgroup"), "memory.max"),
    ):
        controllers = top / "cgroup.controllers"
        if controllers.exists() and "memory" not in controllers.read_text():
            continue
        if (top / "cgroup.procs").exists():
            return top, limit
    return None, None


@contextlib.contextmanager
def thrashing(limit_mib, seconds):
    """A process inside a memory cgroup reads a file twice as large as its limit, again and again."""
    top, limit = memory_cgroup()
    group = top / f"pcptune-test-{os.getpid()}"
    group.mkdir()
    try:
        (group / limit).write_text(str(limit_mib << 20))
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
            file.write(os.urandom(1 << 20) * (2 * limit_mib))
            file.flush()
            # out of the cache of this process's group, so that the reads count inside the other
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            code = (
                f"import os,time\nopen('{group}/cgroup.procs','w').write(str(os.getpid()))\n"
                f"end=time.monotonic()+{seconds}\nprint('in',flush=True)\n"
                f"while time.monotonic()<end:\n"
                f"  with open('{file.name}','rb',buffering=0) as f:\n"
                f"    while f.read(1<<20): pass\n"
            )
            with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as p:
                p.stdout.readline()
                yield group
                p.wait()
    finally:
        live.wait_until("the cgroup is empty", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


class ALoadThatThrashesInsideItsOwnLimit(live.LiveTest):
    def test_changes_nothing(self):
        if not memory_cgroup()[0]:
            self.skipTest("no memory cgroups can be made here")
        daemon = self.daemon({}, "--enforce", policy_dirs=[str(live.SOURCE / "policies")]).wait_ready()
        cpu = live.cpus()[-1]
        live.park(PARK_MIB, cpu)
        with thrashing(64, 8) as group:
            time.sleep(7)
            usage = [(group / n).read_text() for n in ("memory.failcnt", "memory.events") if (group / n).exists()]
        self.assertTrue(any(re.search(r"[1-9]", u) for u in usage), "the load never met its limit")
        self.assertEqual(daemon.metric("pcptune_drains_total"), 0, daemon.said())
        self.assertEqual(live.fraction(), self.before)
        self.assertEqual(daemon.stop(), 0, daemon.said())


if __name__ == "__main__":
    assert mmap.PAGESIZE == live.PAGE
    live.main()
