# SPDX-License-Identifier: Apache-2.0
"""Two workers that train on one GPU, each with half of the processors, over what they could use: steps in a table.

    python3 train.py --reckon PROGRAM -o FOLDER [--device cuda] [--models resnet50,gpt2,wide] [--steps 30]

For each model: without communication, gloo (DistributedDataParallel), ddp_hook and attach over a plan for it. Checks that the parameters
are the same bits at all workers, and that attach's exposed communication is as predicted. FOLDER gets training.csv. Exit status: 0;
1 a parameter differs; 3 this Python's torch sees no such device. `--device cpu` tries the script itself."""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

WORKERS = 2
MODES = ("none", "gloo", "ddp_hook", "attach")


def resnet(torch, width, blocks):
    """Bottlenecks as ResNet-50 has them, of 25.5 million parameters with width 64 and blocks (3, 4, 6, 3)."""
    nn = torch.nn

    class Bottleneck(nn.Module):
        def __init__(self, before, inner, stride):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(before, inner, 1, bias=False), nn.GroupNorm(8, inner), nn.ReLU(),
                                      nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.GroupNorm(8, inner), nn.ReLU(),
                                      nn.Conv2d(inner, 4 * inner, 1, bias=False), nn.GroupNorm(8, 4 * inner))
            self.skip = nn.Identity() if stride == 1 and before == 4 * inner else nn.Conv2d(before, 4 * inner, 1, stride, bias=False)

        def forward(self, x):
            return torch.relu(self.body(x) + self.skip(x))

    layers, before = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.GroupNorm(8, width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], width
    for stage, count in enumerate(blocks):
        for block in range(count):
            inner = width << stage
            layers.append(Bottleneck(before, inner, 2 if stage > 0 and block == 0 else 1))
            before = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 1000))


def transformer(torch, width, layers, words):
    """A decoder with a tied head."""
    nn = torch.nn

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(words, width)
            layer = nn.TransformerEncoderLayer(width, max(1, width // 64), 4 * width, 0.0, batch_first=True, norm_first=True)
            self.body = nn.TransformerEncoder(layer, layers)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.body(self.embed(ids)))

    return Decoder()


def wide(torch, width, layers):
    """A few large tensors."""
    return torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(layers)])


def build(name, batch):
    """(model, inputs, loss of the output): for reckon.record as well, through the functions below."""
    import torch

    torch.manual_seed(1)
    small = os.environ.get("TRAIN_SMALL") == "1"
    if name == "resnet50":
        model = resnet(torch, 8 if small else 64, (1, 1, 1, 1) if small else (3, 4, 6, 3))
        side = 32 if small else 224
        return model, (torch.randn(batch, 3, side, side),), lambda y: y.float().square().mean()
    if name == "gpt2":
        words, width, length = (100, 64, 8) if small else (50257, 768, 256)
        model = transformer(torch, width, 1 if small else 12, words)
        return model, (torch.randint(words, (batch, length)),), lambda y: y.float().square().mean()
    width, layers = (64, 2) if small else (4096, 6)
    return wide(torch, width, layers), (torch.randn(batch, width),), lambda y: y.float().square().mean()


BATCH = {"resnet50": 32, "gpt2": 8, "wide": 512}


def worker(options):
    import torch
    import torch.distributed as dist

    import reckon

    rank, name, mode = int(os.environ["RANK"]), options.models, options.mode
    processors = sorted(os.sched_getaffinity(0))
    half = max(1, len(processors) // WORKERS)
    os.sched_setaffinity(0, processors[rank * half:(rank + 1) * half] or processors)
    torch.set_num_threads(half)
    model, inputs, loss = build(name, BATCH[name])
    model = model.to(options.device)
    inputs = [x.to(options.device) for x in inputs]
    job, trained = None, model
    if mode in ("gloo", "ddp_hook"):
        dist.init_process_group("gloo")
        trained = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if mode in ("ddp_hook", "attach"):
        job = reckon.join(options.plan)
        if mode == "attach":
            reckon.attach(model, job)
        else:
            trained.register_comm_hook(trained, reckon.ddp_hook(job))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def synchronize():
        if options.device == "cuda":
            torch.cuda.synchronize()

    def step():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.device == "cuda"):
            value = loss(trained(*inputs))
        value.backward()
        if mode == "attach":
            job.wait()
        optimizer.step()

    for _ in range(5):
        step()
    times = []
    for _ in range(options.steps):
        synchronize()
        begin = time.perf_counter()
        step()
        synchronize()
        times.append(time.perf_counter() - begin)
    result = {"step_seconds": sorted(times)[len(times) // 2]}
    bits = hashlib.sha256()
    for parameter in model.parameters():
        bits.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    result["parameters"] = bits.hexdigest()
    if job is not None:
        result["prediction"] = job.report()["prediction"]
        job.leave()
    pathlib.Path(options.output, f"{name}-{mode}-{rank}.json").write_text(json.dumps(result))


def free_port():
    with socket.socket() as some:
        some.bind(("", 0))
        return str(some.getsockname()[1])


def record(options, name):
    """The model's passes, recorded by both workers at once."""
    text = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\nimport train\n" \
           f"def build(batch):\n    model, inputs, loss = train.build({name!r}, batch)\n" \
           f"    return model.to({options.device!r}), tuple(x.to({options.device!r}) for x in inputs), loss\n"
    script = pathlib.Path(options.output, f"{name}_model.py")
    script.write_text(text)
    outputs = [pathlib.Path(options.output, f"{name}-{rank}.json") for rank in range(WORKERS)]
    started = [subprocess.Popen([sys.executable, "-m", "reckon.record", f"{script}:build", "--batch", str(BATCH[name]), "--iterations", "10",
                                 "-o", output]) for output in outputs]
    if any([process.wait() != 0 for process in started]):
        raise SystemExit(f"{name} could not be recorded")
    return outputs[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reckon", default="reckon")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", default="resnet50,gpt2,wide")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--profile", help="of this machine; default: measured now")
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    parser.add_argument("--plan", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mode:
        return worker(options)
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} sees no GPU", file=sys.stderr)
        return 3
    pathlib.Path(options.output).mkdir(parents=True, exist_ok=True)
    profile = options.profile or str(pathlib.Path(options.output, "machine.json"))
    if not options.profile:
        subprocess.run([options.reckon, "probe", "--time", "30s", "--force", "-o", profile], check=True, stdout=subprocess.DEVNULL)
    rows, wrong = [], False
    for name in options.models.split(","):
        plan = pathlib.Path(options.output, f"{name}-plan.json")
        plan.unlink(missing_ok=True)
        subprocess.run([options.reckon, "plan", "-p", profile, "-m", record(options, name), "--workers", str(WORKERS), "-o", plan],
                       check=True, stdout=subprocess.DEVNULL)
        for mode in MODES:
            ports = free_port(), free_port()
            started = []
            for rank in range(WORKERS):
                world = {"RANK": str(rank), "WORLD_SIZE": str(WORKERS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": ports[0]}
                job = {f"RECKON_{key}": value for key, value in world.items()} | {"RECKON_MASTER_PORT": ports[1]}
                started.append(subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--models", name, "--mode", mode, "--plan", str(plan)],
                                                env={**os.environ, **world, **job}))
            if any([process.wait() != 0 for process in started]):
                print(f"{name}, {mode}: failed")
                wrong = True
                continue
            results = [json.loads(pathlib.Path(options.output, f"{name}-{mode}-{rank}.json").read_text()) for rank in range(WORKERS)]
            same = mode == "none" or all(r["parameters"] == results[0]["parameters"] for r in results)
            wrong = wrong or not same
            step = max(r["step_seconds"] for r in results)
            prediction = results[0].get("prediction", {})
            rows.append({"model": name, "mode": mode, "step_ms": f"{1e3 * step:.2f}",
                         "of_gloo": "", "exposed_predicted_ms": f"{1e3 * prediction['seconds']:.2f}" if prediction else "",
                         "exposed_measured_ms": f"{1e3 * prediction['measured_seconds']:.2f}" if prediction else "", "same": same})
            gloo = [row for row in rows if row["model"] == name and row["mode"] == "gloo"]
            rows[-1]["of_gloo"] = f"{float(rows[-1]['step_ms']) / float(gloo[0]['step_ms']):.3f}" if gloo else ""
            print(", ".join(f"{key} {value}" for key, value in rows[-1].items() if value != ""), flush=True)
    with open(pathlib.Path(options.output, "training.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["model"])
        writer.writeheader()
        writer.writerows(rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
