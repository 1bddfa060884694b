# SPDX-License-Identifier: Apache-2.0
# The shipped workloads have their tensors in the order in which PyTorch has the gradients ready.
source "$(dirname "$0")/common.sh"
needs torchvision python3-torchvision

cat > models.py << 'PYTHON'
import torch, torchvision

def build(model, side, batch): # the order does not depend on the image's size
    return model(), (torch.zeros(batch, 3, side, side),)

def resnet50(batch):
    return build(torchvision.models.resnet50, 64, batch)

def vgg16(batch):
    return build(lambda: torchvision.models.vgg16(init_weights=False), 32, batch)
PYTHON
for model in resnet50 vgg16; do
  "$python" -m reckon.record models.py:$model --batch 2 --warm-up 0 --iterations 1 -o $model.json 2> err > out || fail "$(cat err)"
  "$python" - $model.json "$source_dir/profiles/workloads/$model.json" << 'PYTHON' || fail "$model"
import json, sys
recorded, shipped = ([(t["name"], t["elements"]) for t in json.load(open(name))["tensors"]] for name in sys.argv[1:])
for place, (a, b) in enumerate(zip(recorded, shipped)):
    assert a == b, f"tensor {place} is {a} in the recording and {b} in what is shipped"
assert len(recorded) == len(shipped)
PYTHON
done
