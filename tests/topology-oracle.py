#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A second opinion about the CPUs, nodes and caches below DIR, one `key value` a line.

Written from sysfs's documentation without looking at lib/sense/topology.c; only the test uses it.
"""
import glob
import os
import re
import sys

root = sys.argv[1]
CPU = os.path.join(root, "sys/devices/system/cpu")
NODE = os.path.join(root, "sys/devices/system/node")


def text(*parts):
    try:
        with open(os.path.join(*parts)) as f:
            return f.read().strip("\n\0")
    except OSError:
        return None


def members(listing, bitmap):
    """The numbers in a "0-3,8" list, or in a mask of comma-separated words."""
    if listing is not None:
        out = set()
        for part in filter(None, listing.split(",")):
            lo, _, hi = part.partition("-")
            out.update(range(int(lo), int(hi or lo) + 1))
        return out
    if bitmap is not None:
        mask = int(bitmap.replace(",", ""), 16)
        return {i for i in range(mask.bit_length()) if mask >> i & 1}
    return None


def numbered(directory, word):
    found = {}
    for path in glob.glob(os.path.join(directory, word + "[0-9]*")):
        m = re.fullmatch(word + r"(\d+)", os.path.basename(path))
        if m:
            found[int(m.group(1))] = path
    return found


def size(s):
    units = {"K": 1024, "M": 1024**2, "G": 1024**3}
    return int(s[:-1]) * units[s[-1]] if s and s[-1] in units else int(s or 0)


cpus = numbered(CPU, "cpu")
online = members(text(CPU, "online"), None)
if online is None:
    online = {n for n, path in cpus.items() if text(path, "online") != "0"}
nodes = members(text(NODE, "online"), None)
if nodes is None:
    nodes = set(numbered(NODE, "node"))

l2, llc = [], []
for cpu in sorted(online):
    leaves = []
    for index in sorted(numbered(os.path.join(CPU, f"cpu{cpu}", "cache"), "index").items()):
        path = index[1]
        shared = members(text(path, "shared_cpu_list"), text(path, "shared_cpu_map"))
        leaf_size = size(text(path, "size"))
        if text(path, "type") in ("Data", "Unified") and leaf_size:
            sharers = len(shared & online) if shared else 1
            leaves.append((int(text(path, "level")), leaf_size, max(sharers, 1)))
    l2 += [(s, n) for level, s, n in leaves if level == 2]
    outer = [leaf for leaf in leaves if leaf[0] >= 2]
    if outer:
        top = max(level for level, _, _ in outer)
        llc.append([(s, n) for level, s, n in outer if level == top][-1])


def smallest(caches):
    if not caches:
        return (0, 0)
    least = min(s for s, _ in caches)
    return (least, max(n for s, n in caches if s == least))


print("online", len(online))
print("nodes", len(nodes))
print("l2_bytes %d\nl2_cpus %d" % smallest(l2))
print("llc_bytes %d\nllc_cpus %d" % smallest(llc))
claims = {}
for node in sorted(nodes):
    where = members(text(NODE, f"node{node}", "cpulist"), text(NODE, f"node{node}", "cpumap"))
    claims[node] = (where or set()) & online
# a firmware that puts one CPU on several nodes leaves nothing to compare
if sum(map(len, claims.values())) == len(set().union(*claims.values())):
    for node, where in claims.items():
        print("node%d_cpus %d" % (node, len(where)))
