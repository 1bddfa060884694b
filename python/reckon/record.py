# SPDX-License-Identifier: Apache-2.0
"""Makes a workload of a PyTorch model by training it for some iterations.

    python3 -m reckon.record my_model.py:build --batch 8 -o my_model.json

build(batch) returns (model, inputs) or (model, inputs, loss): a torch.nn.Module on the device that it is to run on; its
inputs for one batch, a tuple or, for keywords, a dict; and what makes a scalar of its output. Without the last it is
the output's own `.loss` where it has one, else the mean of the output.

The workload has every tensor in the order in which its gradient was ready, and for every layer (a module with
parameters of its own) the time of its forward and of its backward pass: from when the layer before was done, so that
the layers' times add up to the pass. Medians over the iterations. On a GPU they are the GPU's times.
"""
import argparse
import importlib.util
import json
import os
import statistics
import sys
import time

DTYPES = {"torch.float32": "fp32", "torch.float16": "fp16", "torch.bfloat16": "bf16"}


class Unfit(Exception):
    """The model or the arguments are not what can be recorded; says what to do."""


class Marks:
    """Points in time, of the processor or in the queue of the GPU."""

    def __init__(self, torch, device):
        self.torch = torch
        self.on_gpu = device.type == "cuda"

    def now(self):
        if not self.on_gpu:
            return time.perf_counter()
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def settle(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    def seconds(self, begin, end):
        return begin.elapsed_time(end) * 1e-3 if self.on_gpu else end - begin


def scalar(output, loss):
    if loss is not None:
        return loss(output)
    return output.loss if getattr(output, "loss", None) is not None else output.float().mean()


class Recorder:
    def __init__(self, torch, model, inputs, loss):
        self.torch, self.model, self.loss = torch, model, loss
        self.args, self.kwargs = ((), inputs) if isinstance(inputs, dict) else (inputs, {})
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise Unfit("the model has no parameter that requires a gradient")
        self.device = next(iter(self.parameters.values())).device
        self.marks = Marks(torch, self.device)
        self.modules = dict(model.named_modules())
        self.ended, self.ready = [], []  # of the iteration in hand: (name, mark)
        self.nodes = []
        for name, module in self.modules.items():
            module.register_forward_hook(self.note(self.ended, name))
        for name, parameter in self.parameters.items():
            # The node that adds up the parameter's gradient; it is kept, or its hook would go with it.
            with torch.enable_grad():
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(self.note(self.ready, name))
            self.nodes.append(node)

    def note(self, into, name):
        return lambda *_: into.append((name, self.marks.now()))

    def iteration(self):
        """The names of what came, each with the seconds since what came before it: forward, backward."""
        self.model.zero_grad()
        self.ended.clear(), self.ready.clear()
        begin = self.marks.now()
        value = scalar(self.model(*self.args, **self.kwargs), self.loss)
        if value.dim() != 0:
            raise Unfit(f"the loss has shape {tuple(value.shape)}; return a function from build that makes a scalar of it")
        turn = self.marks.now()
        value.backward()
        end = self.marks.now()
        self.marks.settle()
        return self.intervals(begin, self.ended, turn), self.intervals(turn, self.ready, end)

    def intervals(self, begin, noted, end):
        out, before = [], begin
        for name, mark in noted:
            out.append((name, self.marks.seconds(before, mark)))
            before = mark
        return out, self.marks.seconds(before, end)

    def layer_of(self, parameter, called):
        """The nearest module that was called: of some only the parent is, which uses their parameters itself."""
        name = parameter.rpartition(".")[0]
        while name and name not in called:
            name = name.rpartition(".")[0]
        return name

    def record(self, warm_up, iterations):
        for _ in range(warm_up):
            self.iteration()
        runs = [self.iteration() for _ in range(iterations)]
        (ended, _), (ready, _) = runs[-1]
        called = list(dict.fromkeys(name for name, _ in ended))
        order = list(dict.fromkeys(name for name, _ in ready))
        if not order:
            raise Unfit("no gradient came back; does the loss depend on the model's parameters?")
        layer_of = {name: self.layer_of(name, set(called)) for name in order}
        layers = [name for name in called if name in set(layer_of.values())]
        forward = [self.by_layer(run[0], {name: name for name in layers}) for run in runs]
        backward = [self.by_layer(run[1], layer_of) for run in runs]

        def median(passes, layer):
            return statistics.median(one.get(layer, 0.0) for one in passes)

        def computation(seconds):
            return {"seconds": seconds} if seconds > 0 else None

        document = {
            "schema": "reckon/workload",
            "schema_version": 1,
            "dtype": DTYPES[str(self.parameters[order[0]].dtype)],
            "forward_seconds": statistics.median(sum(one.values()) for one in forward),
            "backward_seconds": statistics.median(sum(one.values()) for one in backward),
            "tensors": [self.tensor(name) for name in order],
            "layers": [],
        }
        for layer in layers:
            entry = {"name": layer or "model", "tensors": [name for name in order if layer_of[name] == layer],
                     "forward": computation(median(forward, layer)),
                     "weight_gradient": computation(median(backward, layer))}
            document["layers"].append({key: value for key, value in entry.items() if value is not None})
        unused = [name for name in self.parameters if name not in layer_of]
        return document, unused

    @staticmethod
    def by_layer(one_pass, layer_of):
        """Seconds of each layer: what comes between two of them belongs to the later, the end to the last."""
        noted, rest = one_pass
        seconds, pending, last = {}, 0.0, None
        for name, taken in noted:
            pending += taken
            if name in layer_of:
                last = layer_of[name]
                seconds[last] = seconds.get(last, 0.0) + pending
                pending = 0.0
        seconds[last] = seconds.get(last, 0.0) + pending + rest
        return seconds

    def tensor(self, name):
        dtype = str(self.parameters[name].dtype)
        if dtype not in DTYPES:
            raise Unfit(f"the gradient of {name} is {dtype}; a workload has fp32, fp16 and bf16")
        return {"name": name, "elements": self.parameters[name].numel(), "dtype": DTYPES[dtype]}


def load(spec):
    path, _, function = spec.rpartition(":")
    if not path or not function:
        raise Unfit(f"{spec}: name a file and a function in it, as my_model.py:build")
    if not os.path.exists(path):
        raise Unfit(f"{path}: there is no file of this name")
    module_spec = importlib.util.spec_from_file_location("recorded_model", path)
    module = importlib.util.module_from_spec(module_spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    module_spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise Unfit(f"{path} has no function {function}")
    return getattr(module, function)


def record(build, batch, warm_up=5, iterations=20, name="model"):
    """The workload of build(batch), a dict, and the names of parameters that got no gradient."""
    import torch

    built = build(batch)
    if not isinstance(built, tuple) or len(built) not in (2, 3):
        raise Unfit("build has to return (model, inputs) or (model, inputs, loss)")
    model, inputs, loss = built if len(built) == 3 else (*built, None)
    recorder = Recorder(torch, model, inputs, loss)
    document, unused = recorder.record(warm_up, iterations)
    where = torch.cuda.get_device_name(recorder.device) if recorder.marks.on_gpu else "the processor"
    if not recorder.marks.on_gpu:
        document["threads"] = torch.get_num_threads()
    document.update(name=name, batch=batch, provenance=f"recorded by reckon.record with PyTorch {torch.__version__} on "
                    f"{where}: order and times of {iterations} iterations after {warm_up} to warm up")
    return document, unused


def main():
    parser = argparse.ArgumentParser(prog="python3 -m reckon.record", description=__doc__.split("\n\n")[0],
                                     epilog=__doc__.split("\n\n", 2)[2], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FILE:FUNCTION", help="builds the model")
    parser.add_argument("--batch", type=int, required=True, help="samples of one iteration")
    parser.add_argument("--warm-up", type=int, default=5, help="iterations before those that count (default 5)")
    parser.add_argument("--iterations", type=int, default=20, help="iterations that count (default 20)")
    parser.add_argument("--name", help="of the workload (default: the function's)")
    parser.add_argument("-o", "--output", required=True, help="the workload")
    options = parser.parse_args()
    try:
        if options.batch < 1 or options.iterations < 1 or options.warm_up < 0:
            raise Unfit("--batch and --iterations need at least 1")
        document, unused = record(load(options.model), options.batch, options.warm_up, options.iterations,
                                  options.name or options.model.rpartition(":")[2])
    except Unfit as error:
        print(f"reckon.record: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"reckon.record: {error}; it needs PyTorch (Debian: apt install python3-torch)", file=sys.stderr)
        return 4
    if unused:
        print(f"reckon.record: left out, as they got no gradient: {', '.join(unused)}", file=sys.stderr)
    part = options.output + ".part"
    with open(part, "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(part, options.output)
    print(f"wrote {options.output}: {len(document['tensors'])} tensors, forward {document['forward_seconds'] * 1e3:.2f} ms, "
          f"backward {document['backward_seconds'] * 1e3:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
