#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes profiles/{h100,a100}-cluster.json: up to 32 machines of eight GPUs on NVSwitches, a NIC for each GPU and two
processors, from published figures. profiles/README.md says which; each cell says where it is from.

    scripts/generate_gpu_cluster_profiles.py            writes the files
    scripts/generate_gpu_cluster_profiles.py --check    exit 1 if a file differs from what would be written
"""

import argparse
import json
import pathlib
import re
import sys

from generate_coarse_profiles import canonical

GPUS, MACHINES = 8, 32
KINDS = {
    "h100": {
        "name": "8 H100 SXM5, NVLink 4, 8 x 400 Gb/s", "gpu": "NVIDIA H100 80GB HBM3", "sums": True, "gpu_bytes": 80 << 30, "cores": 112,
        "nvlinks": 18, "nvlink": 25e9, "pcie": 32e9, "nic": 50e9, "memory": 307.2e9, "per_switch": 1,
        "source": "published: NVIDIA DGX H100: data sheet and user guide (GPUs, NVLinks, NICs, which NIC is next to which GPU); "
                  "Intel, Xeon Platinum 8480 (memory channels)",
        "nvlink_from": "NVIDIA, H100: 18 NVLinks of 25 GB/s each way, 900 GB/s both ways together",
        "nic_from": "NVIDIA, DGX H100: 8 ConnectX-7 of 400 Gb/s, all of them together",
        "memory_from": "eight channels DDR5-4800 of each of two processors: 2 x 307.2 GB/s, half of it taken for each of reading and writing",
    },
    "a100": {
        "name": "8 A100 SXM4, NVLink 3, 8 x 200 Gb/s", "gpu": "NVIDIA A100-SXM4-40GB", "sums": False, "gpu_bytes": 40 << 30, "cores": 128,
        "nvlinks": 12, "nvlink": 25e9, "pcie": 16e9, "nic": 25e9, "memory": 204.8e9, "per_switch": 2,
        "source": "published: NVIDIA DGX A100: data sheet and user guide (GPUs, NVLinks, NICs, pairs of GPUs below a PCIe switch); "
                  "AMD, EPYC 7742 (memory channels)",
        "nvlink_from": "NVIDIA, A100: 12 NVLinks of 25 GB/s each way, 600 GB/s both ways together",
        "nic_from": "NVIDIA, DGX A100: 8 ConnectX-6 of 200 Gb/s, all of them together",
        "memory_from": "eight channels DDR4-3200 of each of two processors: 2 x 204.8 GB/s, half of it taken for each of reading and writing",
    },
}


# Seconds of a write, of NCCL's cost model (src/graph/tuning.cc of v2.28.7: hwLatencies, Ring, Simple).
NVLINK_LATENCY, NETWORK_LATENCY = 3.4e-6, 14e-6
NCCL = "NCCL 2.28.7, constants of its cost model for a step of a ring with the Simple protocol: {}"


def published(case, value, reason, **key):
    return {"case": case, "unit": "bytes_per_second", "bytes_convention": "payload", "status": "published",
            "reason": reason, "n": 0, "spread": 0, "p50": value, "min": value, "max": value, "p99": value, **key}


def latency(case, seconds, reason, **key):
    cell = {**published(case, seconds, reason, bytes=8, direction="one_way", **key), "unit": "seconds"}
    del cell["bytes_convention"]
    return cell


def profile(name):
    kind = KINDS[name]
    objects = [{"id": "m0", "kind": "machine"}]
    pcie = {"transfers_per_second": kind["pcie"], "width": 16}
    for node in range(2):
        objects.append({"id": f"m0/pkg{node}", "kind": "package", "parent": "m0"})
        objects.append({"id": f"m0/numa{node}", "kind": "numa_node", "os_index": node, "parent": f"m0/pkg{node}"})
    objects.append({"id": "m0/nvswitch0", "kind": "link_switch", "name": "NVSwitches", "parent": "m0", "sums": kind["sums"]})
    gpus, nics = [], []
    for switch in range(GPUS // kind["per_switch"]):
        first = switch * kind["per_switch"]
        node = first // (GPUS // 2)
        objects.append({"id": f"m0/hb{switch}", "kind": "host_bridge", "parent": f"m0/numa{node}"})
        objects.append({"id": f"m0/sw{switch}", "kind": "pci_bridge", "parent": f"m0/hb{switch}", "pcie": pcie})
        for i in range(first, first + kind["per_switch"]):
            gpus.append({"id": f"m0/gpu{i}", "kind": "gpu", "name": kind["gpu"], "bytes": kind["gpu_bytes"],
                         "parent": f"m0/sw{switch}", "pcie": pcie})
            nics.append({"id": f"m0/nic{i}", "kind": "nic", "link_bytes_per_second": kind["nic"],
                         "parent": f"m0/sw{switch}", "pcie": pcie})
        objects += gpus + nics
        gpus, nics = [], []
    links = [{"kind": "nvlink", "from": "m0/nvswitch0", "to": f"m0/gpu{i}", "count": kind["nvlinks"],
              "bytes_per_second": kind["nvlinks"] * kind["nvlink"]} for i in range(GPUS)]
    cells = [published("memory_read_bandwidth", kind["memory"], kind["memory_from"], **{"from": "m0"}),
             published("memory_write_bandwidth", kind["memory"], kind["memory_from"], **{"from": "m0"}),
             published("port_bandwidth", GPUS * kind["nic"], kind["nic_from"], **{"from": "m0", "transport": "verbs;ofi_rxm"}),
             latency("fabric_write_latency", NETWORK_LATENCY, NCCL.format("network"),
                     **{"from": "m0", "transport": "verbs;ofi_rxm"}),
             *(latency("pair_latency", NVLINK_LATENCY, NCCL.format("NVLink"), transport="cuda",
                       **{"from": f"m0/gpu{a}", "to": f"m0/gpu{b}"})
               for a in range(GPUS) for b in range(a + 1, GPUS))]
    return {"schema": "reckon/profile", "schema_version": 1, "name": f"{name}-cluster", "source": kind["source"],
            "context": {}, "fits": [], "cells": sorted(cells, key=lambda cell: cell["case"]),
            "machines": [{"id": "m0", "name": kind["name"], "count": MACHINES, "cores": kind["cores"]}],
            "topology": {"objects": objects, "links": links}}


def text_of(document):
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False)
    return re.sub(r"(?<=[ \[])\d+(?:\.\d+)?(?=[,\n])", canonical, re.sub(r"(\d)\.0(?=[,\n])", r"\1", text)) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    folder = pathlib.Path(__file__).resolve().parent.parent / "profiles"
    different = []
    for name in KINDS:
        path, text = folder / f"{name}-cluster.json", text_of(profile(name))
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(str(path))
    if different:
        sys.exit(f"differ from what {pathlib.Path(__file__).name} writes: {', '.join(different)}")


if __name__ == "__main__":
    main()
