# SPDX-License-Identifier: Apache-2.0
"""Holds an MSCCL program against what its two readers demand and against when they use it:

    msccl_check.py FILE --elements N [--element-bytes 4] [--runtimes msccl,rccl]

Rules of microsoft/msccl (src/graph/topo.cc, tuning.cc, include/msccl.h, commit b23e9cd) and of RCCL (src/misc/msccl/
msccl_parser.cc, msccl_lifecycle.cc, include/msccl/msccl_struct.h, commit 0cbce2a7). Ends with 1 and every rule that is broken."""

import argparse
import pathlib
import sys
import xml.etree.ElementTree as tree

NODES, CHILDREN, ATTRIBUTES, TEXT = 4096, 1024, 16, 255  # of both readers' fixed tables
NAME, COUNT = 63, 72                                     # MSCCL_MAX_ALGO_NAME, MSCCL_MAX_COUNT
PEERS = 32                                               # MSCCL_MAX_NUM_THREAD_BLOCKS_PER_CHANNEL
STEPS = {"msccl": 256, "rccl": 64}
BLOCKS = {"msccl": 216, "rccl": 64}
CHANNELS = {"msccl": 32, "rccl": 128}
PROGRAM = {"msccl": ("nchunksperloop", "nchannels", "ngpus", "inplace"),
           "rccl": ("nchunksperloop", "nchannels", "ngpus", "inplace", "outofplace", "minBytes", "maxBytes")}
STEP = ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep")
# What an interpreter reads and writes of its own buffers; "nop" only waits.
SOURCES, DESTINATIONS = ("s", "rrs", "rrc", "rrcs", "cpy", "re", "ra"), ("r", "rcs", "rrc", "rrcs", "cpy", "re", "ra")
SENDS, RECEIVES = ("s", "rcs", "rrs", "rrcs"), ("r", "rcs", "rrs", "rrc", "rrcs")
TYPES = {"msccl": {*SENDS, *RECEIVES, "cpy", "re", "ra", "nop"}, "rccl": {*SENDS, *RECEIVES, "cpy", "re", "nop"}}


class Reader:
    def __init__(self, runtime, path):
        self.runtime, self.broken = runtime, []
        text = path.read_text()
        self.need(text.lstrip().startswith(("<algo", "<!--")), "the first element is algo: there is no XML declaration")
        self.algo = tree.fromstring(text)
        self.need(self.algo.tag == "algo", "the document is an algo")
        for node in self.algo.iter():
            self.need(len(node.attrib) <= ATTRIBUTES and len(node) <= CHILDREN, f"{node.tag} fits into its table")
            self.need(all(len(word) <= TEXT for word in (*node.attrib, *node.attrib.values())), f"{node.tag} has short words")

    def need(self, holds, rule):
        if not holds and rule not in self.broken:
            self.broken.append(rule)

    def number(self, node, name, default=None):
        """An attribute that must be there, unless it has a default."""
        text = node.get(name)
        if text is None and default is not None:
            return default
        try:
            return int(text or "")
        except ValueError:
            self.need(False, f"{node.tag} has {name}, a whole number")
            return 0

    def program(self):
        for name in PROGRAM[self.runtime]:
            self.number(self.algo, name)
        self.need(0 < len(self.algo.get("name", "")) <= NAME, f"a name of at most {NAME} characters")
        self.need(self.algo.get("proto") in ("Simple", "LL", "LL128"), "a protocol that is known")
        self.need(self.algo.get("coll") == "allreduce", "an all-reduce")
        self.need(0 < self.number(self.algo, "nchannels") <= CHANNELS[self.runtime], "channels that there are")
        least, most = self.number(self.algo, "minBytes", 0), self.number(self.algo, "maxBytes", 2**27)
        self.need(self.runtime == "rccl" or 0 <= least <= most, "0 <= minBytes <= maxBytes")
        gpus = self.algo.findall("gpu")
        self.need([self.number(g, "id") for g in gpus] == list(range(self.number(self.algo, "ngpus"))), "a gpu for each rank")
        for gpu in gpus:
            self.gpu(gpu)

    def gpu(self, gpu):
        chunks = self.number(self.algo, "nchunksperloop")
        for name in ("i_chunks", "o_chunks"):
            self.need(self.number(gpu, name) in (0, chunks), f"{name} are nchunksperloop")
        self.need(self.number(gpu, "s_chunks") >= 0, "s_chunks are not negative")
        blocks = gpu.findall("tb")
        kept = 1 + self.number(self.algo, "ngpus") + len(blocks) + sum(len(b) for b in blocks)
        self.need(kept < NODES, f"fewer than {NODES} elements of a gpu, with the other gpus")
        self.need(len(blocks) <= BLOCKS[self.runtime], f"at most {BLOCKS[self.runtime]} thread blocks")
        self.need([self.number(b, "id") for b in blocks] == list(range(len(blocks))), "thread blocks numbered from 0 on")
        for end in ("send", "recv"):
            ends = [(self.number(b, "chan"), self.number(b, end)) for b in blocks if self.number(b, end) >= 0]
            self.need(len(set(ends)) == len(ends), "one thread block for an end of a connection")
            self.need(all(sum(c == channel for c, _ in ends) <= PEERS for channel, _ in ends), "few peers of a channel")
        for block in blocks:
            self.block(gpu, block)

    def block(self, gpu, block):
        peers = [self.number(block, end) for end in ("send", "recv")]
        self.need(all(-1 <= p < self.number(self.algo, "ngpus") and p != self.number(gpu, "id") for p in peers),
                  "peers are other ranks or -1")
        self.need(0 <= self.number(block, "chan") < self.number(self.algo, "nchannels"), "channels are below nchannels")
        steps = block.findall("step")
        self.need(len(steps) <= STEPS[self.runtime], f"at most {STEPS[self.runtime]} steps of a thread block")
        self.need([self.number(s, "s") for s in steps] == list(range(len(steps))), "steps numbered from 0 on")
        for step in steps:
            for name in STEP:
                self.number(step, name)
            kind = step.get("type")
            self.need(kind in TYPES[self.runtime], "steps of a type that is known")
            self.need(kind not in SENDS or peers[0] >= 0, "a peer to send to")
            self.need(kind not in RECEIVES or peers[1] >= 0, "a peer to receive from")
            self.need(kind == "nop" or 0 < self.number(step, "cnt") < COUNT, f"cnt below {COUNT}")
            self.need(self.number(step, "hasdep") in (0, 1), "hasdep is 0 or 1")
            for end, kinds in (("src", SOURCES), ("dst", DESTINATIONS)):
                bound = {"i": "i_chunks", "o": "o_chunks", "s": "s_chunks"}.get(step.get(f"{end}buf"))
                self.need(bound is not None, "buffers are i, o or s")
                self.need(bound is None or kind not in kinds or 0 <= self.number(step, f"{end}off") < self.number(gpu, bound),
                          "offsets lie in their buffer")

    def used_for(self, elements, element_bytes):
        """In place, as a gradient is summed."""
        used = elements * element_bytes
        least, most = self.number(self.algo, "minBytes", 0), self.number(self.algo, "maxBytes", 2**27)
        self.need(elements > 0 and elements % max(1, self.number(self.algo, "nchunksperloop")) == 0,
                  f"used for {elements} elements: nchunksperloop divides them")
        below = used < most if self.runtime == "msccl" else most == 0 or used <= most
        self.need(least <= used and below, f"used for {used} bytes: minBytes to maxBytes")
        self.need(self.number(self.algo, "inplace") != 0, "used in place")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--elements", type=int, required=True)
    parser.add_argument("--element-bytes", type=int, default=4)
    parser.add_argument("--runtimes", default="msccl,rccl")
    arguments = parser.parse_args()
    broken = []
    for runtime in arguments.runtimes.split(","):
        reader = Reader(runtime, arguments.file)
        reader.program()
        reader.used_for(arguments.elements, arguments.element_bytes)
        broken += [f"{runtime}: not so: {rule}" for rule in reader.broken]
    print("\n".join(broken) or "read and used")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
