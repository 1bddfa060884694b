# SPDX-License-Identifier: Apache-2.0
"""Networks of GPUs that are planned on: machines by their figures, put together, and with their rates changed."""

import copy
import itertools
import json

from reproduction.lab import ROOT

CHANGE = 0.2
GIB = 2**30
# The host of the machines written here, where their own is not known: DGX-1's processors.
SOCKETS = 2 * 19.2e9
MEMORY = 2 * 76.8e9 / 2
NVLINK, XGMI = 25e9, 50e9
PCIE3 = {"transfers_per_second": 8e9, "width": 16}
PCIE4 = {"transfers_per_second": 16e9, "width": 16}
NIC = 12.5e9  # 100 Gb/s
DGX1 = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
        (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}  # NVLinks between two of its V100
DGX2_GPUS, DGX2_NVLINKS = 16, 6
# xGMI links between two dies of eight MI250 in one machine; two dies of a package have four.
MI250 = {(0, 1): 4, (0, 2): 1, (0, 4): 2, (1, 2): 1, (1, 3): 1, (1, 5): 1, (2, 3): 4, (2, 6): 1, (3, 7): 2, (4, 5): 4,
         (4, 12): 1, (5, 13): 1, (5, 14): 1, (6, 7): 4, (6, 13): 1, (6, 14): 1, (7, 15): 1, (8, 9): 4, (8, 10): 1,
         (8, 12): 2, (9, 10): 1, (9, 11): 1, (9, 13): 1, (10, 11): 4, (10, 14): 1, (11, 15): 2, (12, 13): 4,
         (14, 15): 4}
TORUS, MESH = (3, 3, 3), (5, 5)
GRID_LINK = 50 * GIB


def grid_links(shape, wraps):
    """Neighbours of a grid as (smaller, larger) numbers, each pair once."""
    places = list(itertools.product(*map(range, shape)))
    number = {place: i for i, place in enumerate(places)}
    pairs = set()
    for place in places:
        for axis, length in enumerate(shape):
            if place[axis] + 1 < length or wraps:
                other = tuple((x + 1) % length if i == axis else x for i, x in enumerate(place))
                pairs.add((min(number[place], number[other]), max(number[place], number[other])))
    return sorted(pairs)


def published(case, value, unit="bytes_per_second", **key):
    counted = {"bytes_convention": "payload"} if unit == "bytes_per_second" else {}
    return {"case": case, "unit": unit, **counted, "status": "published", "reason": "assumed for this page", "n": 0,
            "spread": 0, "p50": value, "min": value, "max": value, "p99": value, **key}


def profile_of(name, machines, cells, objects, links):
    return {"schema": "reckon/profile", "schema_version": 1, "name": name, "source": "assumed, scripts/reproduce",
            "context": {}, "fits": [], "cells": cells, "topology": {"objects": objects, "links": links},
            "machines": machines}


def machine(name, gpus, links, per_switch, nodes=2, pcie=PCIE3, gpu_pcie=PCIE3, nics=(), switched=0):
    """A machine of GPUs with these links {(a, b): bytes/s each way}, or each with `switched` bytes/s to a link switch;
    `nics`: the PCIe switches that have one of 100 Gb/s."""
    objects = [{"id": "m0", "kind": "machine"}]
    for node in range(nodes):
        objects += [{"id": f"m0/pkg{node}", "kind": "package", "parent": "m0"},
                    {"id": f"m0/numa{node}", "kind": "numa_node", "os_index": node, "parent": f"m0/pkg{node}"}]
    if switched:
        objects.append({"id": "m0/nvswitch0", "kind": "link_switch", "name": "NVSwitches", "parent": "m0"})
    a_node = -(-gpus // nodes)
    for gpu in range(gpus):
        switch = gpu // per_switch
        if gpu % per_switch == 0:
            objects += [{"id": f"m0/hb{switch}", "kind": "host_bridge", "parent": f"m0/numa{gpu // a_node}"},
                        {"id": f"m0/sw{switch}", "kind": "pci_bridge", "parent": f"m0/hb{switch}", "pcie": pcie}]
            if switch in nics:
                objects.append({"id": f"m0/nic{switch}", "kind": "nic", "link_bytes_per_second": NIC,
                                "parent": f"m0/sw{switch}", "pcie": pcie})
        objects.append({"id": f"m0/gpu{gpu}", "kind": "gpu", "parent": f"m0/sw{switch}", "pcie": gpu_pcie})
    ways = [{"kind": "socket", "from": f"m0/numa{a}", "to": f"m0/numa{b}", "count": 2, "bytes_per_second": SOCKETS}
            for a, b in itertools.combinations(range(nodes), 2)]
    ways += [{"kind": "nvlink", "from": f"m0/gpu{a}", "to": f"m0/gpu{b}", "count": 1, "bytes_per_second": value}
             for (a, b), value in links.items()]
    if switched:
        ways += [{"kind": "nvlink", "from": "m0/nvswitch0", "to": f"m0/gpu{gpu}", "count": 1,
                  "bytes_per_second": switched}
                 for gpu in range(gpus)]
    cells = [published(f"memory_{what}_bandwidth", MEMORY, **{"from": "m0"}) for what in ("read", "write")]
    return profile_of(name, [{"id": "m0", "name": name, "count": 1, "cores": 40}], cells, objects, ways)


def shipped(name):
    return json.loads((ROOT / f"profiles/{name}.json").read_text())


def gpus_in(document, machines=None):
    """GPUs of the first so many machines; None: of all."""
    groups = [m["id"] for m in document["machines"] for _ in range(m.get("count", 1))]
    return sum(sum(o["kind"] == "gpu" and o["id"].startswith(f"{group}/") for o in document["topology"]["objects"])
               for group in groups[:machines])


def renamed(value, old, new):
    """A document's part where the machine `old` has another id, and what is in it, too."""
    if isinstance(value, dict):
        return {key: renamed(part, old, new) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, old, new) for part in value]
    if isinstance(value, str) and (value == old or value.startswith(f"{old}/")):
        return new + value[len(old):]
    return value


def joined(name, members, servers=(), draw=None):
    """Machines of several profiles, so many of each, [(document, count)], each with a topology of its own; `servers`:
    machines without a topology, [(group, cells)]. `draw` changes the rates of each machine in turn."""
    machines, cells, objects, links = [], [], [], []
    for document, count in members:
        for _ in range(count):
            group = document["machines"][0]
            one = changed(document, draw) if draw else document
            here = renamed({"cells": one["cells"], "topology": one["topology"], "group": group}, group["id"],
                           f"m{len(machines)}")
            machines.append({**here["group"], "count": 1})
            cells += here["cells"]
            objects += here["topology"]["objects"]
            links += here["topology"].get("links", [])
    for group, own in servers:
        machines.append(group)
        cells += changed(profile_of("", [], own, [], []), draw)["cells"] if draw else own
    return profile_of(name, machines, cells, objects, links)


def counted(document, name, count):
    """So many of the one machine that a profile has, all alike."""
    return {**document, "name": name, "machines": [{**document["machines"][0], "count": count}]}


def changed(document, draw):
    """The rates of links, NICs, ports and copies between two GPUs up to a fifth higher or lower, alike in both
    directions; those of memories and sums as they are. Machines of one group stay alike: joined() changes each."""
    factors = {}

    def rate(value, *of):
        of = frozenset(of)
        if not of or of not in factors:
            factors[of] = 1 + draw.uniform(-CHANGE, CHANGE)
        return value * factors[of]

    out = copy.deepcopy(document)
    for item in out["topology"]["objects"]:
        if "pcie" in item:
            was = item["pcie"]["transfers_per_second"]
            item["pcie"] = {**item["pcie"], "transfers_per_second": rate(was, item["id"], item["parent"])}
        if "link_bytes_per_second" in item:
            item["link_bytes_per_second"] = rate(item["link_bytes_per_second"])
    for link in out["topology"].get("links", []):
        link["bytes_per_second"] = rate(link["bytes_per_second"])
    for cell in out["cells"]:
        if cell["case"] in ("port_bandwidth", "link_bandwidth") or cell["case"].startswith("device_to_device"):
            value = rate(cell["p50"], cell["from"], *((cell["to"],) if "to" in cell else ()))
            cell |= dict.fromkeys(("p50", "min", "max", "p99"), value)
    return out


def write(folder, file, document):
    path = folder / f"{file}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path
