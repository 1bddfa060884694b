# SPDX-License-Identifier: Apache-2.0
# python3 -m reckon.record: a model's gradients in the order in which they are ready, and its layers' times, as a workload.
source "$(dirname "$0")/common.sh"
cat > model.py << 'PYTHON'
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 8)
        self.attend = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight
        self.idle = torch.nn.Linear(3, 3)
        self.frozen = torch.nn.Linear(8, 8)
        for parameter in self.frozen.parameters():
            parameter.requires_grad_(False)

    def forward(self, ids):
        x = self.frozen(self.embed(ids))
        return self.head(self.norm(self.attend(x, x, x)[0]))

def build(batch):
    ids = torch.arange(4 * batch).reshape(batch, 4) % 50
    return Net(), (ids,), lambda y: torch.nn.functional.cross_entropy(y.reshape(-1, 50), ids.reshape(-1))

def vector(batch):
    return torch.nn.Linear(2, 2), (torch.zeros(batch, 2),), lambda y: y

def half(batch):
    return torch.nn.Linear(2, 2).bfloat16(), (torch.zeros(batch, 2).bfloat16(),)

def alone(batch):
    return torch.nn.Linear(2, 2)
PYTHON

record_ok() { "$python" -m reckon.record "$@" > out 2> err || fail "$* ended with $?: $(cat err)"; }
record_refused() { # record_refused TEXT ARGUMENT...
  local text=$1 status=0
  shift
  "$python" -m reckon.record "$@" > out 2> err || status=$?
  [[ $status == 2 ]] || fail "$* ended with $status"
  grep -qF -- "$text" err || fail "$*: no '$text' in: $(cat err)"
  [[ $(wc -l < err) == 1 ]] || fail "$*: more than a line: $(cat err)"
}

OMP_NUM_THREADS=1 record_ok model.py:build --batch 3 --warm-up 1 --iterations 3 -o model.json
grep -qF 'left out, as they got no gradient: idle.weight, idle.bias' err || fail "$(cat err)"
"$python" - << 'PYTHON' || fail "the workload is not what the model does"
import json
w = json.load(open("model.json"))
names = [t["name"] for t in w["tensors"]]
# The tied weight's gradient is whole when the embedding's part is there: last.
assert set(names[:2]) == {"norm.weight", "norm.bias"}, names
assert names[-1] == "embed.weight", names
assert set(names[2:-1]) == {f"attend.{n}" for n in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")}, names
assert {t["elements"] for t in w["tensors"]} == {400, 8, 192, 24, 64} and w["dtype"] == "fp32"
assert w["batch"] == 3 and w["threads"] == 1
layers = {l["name"]: l for l in w["layers"]}
# The projection inside the attention is never called as a module: it is the attention's.
assert list(layers) == ["embed", "attend", "norm"] and "attend.out_proj.weight" in layers["attend"]["tensors"], list(layers)
assert sorted(n for l in w["layers"] for n in l["tensors"]) == sorted(names)
for which, total in (("forward", "forward_seconds"), ("weight_gradient", "backward_seconds")):
    parts = [l[which]["seconds"] for l in w["layers"]]
    assert all(s > 0 for s in parts) and w[total] > 0, (which, parts)
PYTHON
ok show model.json
stdout_has 'gradient' '7 tensors' 'batch       3 samples a worker'
ok plan --profile byteps-cluster --workload model.json --workers 4 --servers 0 -o plan.json

record_ok model.py:half --batch 2 --iterations 1 -o half.json
grep -q '"dtype": "bf16"' half.json || fail "not bf16"

record_refused 'there is no file' none.py:build --batch 1 -o no.json
record_refused 'name a file and a function in it' model.py --batch 1 -o no.json
record_refused 'model.py has no function none' model.py:none --batch 1 -o no.json
record_refused 'the loss has shape (2, 2)' model.py:vector --batch 2 -o no.json
record_refused 'build has to return (model, inputs)' model.py:alone --batch 2 -o no.json
record_refused '--batch and --iterations need at least 1' model.py:build --batch 0 -o no.json
absent no.json no.json.part
