# SPDX-License-Identifier: Apache-2.0
# What a refusal advises is typed: each command below is refused, and the one after it, which has what the message names
# and nothing else that is new, is not.
source "$(dirname "$0")/../support/shell.sh"

options_of() { printf '%s\n' "$@" | grep -oE '^--[a-z-]+' | sort -u; }
advised() { # advised REFUSED... -- ADVISED...
  local refused=() option
  while [[ $1 != -- ]]; do
    refused+=("$1")
    shift
  done
  shift
  exits 2 "${refused[@]}"
  stderr_matches '^reckon: error: '
  for option in $(comm -3 <(options_of "${refused[@]}") <(options_of "$@")); do
    stderr_has "$option"
  done
  ok "$@"
}

printf 'name,elements\na,300000\nb,1000000\n' > model.csv
cluster=(plan -p byteps-cluster -m model.csv --workers 8)
torus=(plan -p ace-torus -m model.csv)
gpus=(plan -p byteps-nvlink -m model.csv --places gpu)
pass=(--forward 10ms --backward 20ms)

# plan: how many ranks, and which
advised plan -p byteps-pcie -m model.csv --port-bandwidth 100Gb/s -- plan -p byteps-pcie -m model.csv --port-bandwidth 100Gb/s --workers 8
advised "${cluster[@]}" --strategy ps_noncolocated -- "${cluster[@]}" --strategy ps_noncolocated --servers 4
advised "${cluster[@]}" --strategy coarse -- "${cluster[@]}" --strategy coarse --servers 4
advised "${cluster[@]}" --servers 4091 -- "${cluster[@]}" --servers 1024
advised "${gpus[@]}" --workers 99 -- "${gpus[@]}" --workers 1
advised plan -p byteps-nvlink -m model.csv --places 1 --devices 4 -- plan -p byteps-nvlink -m model.csv --places gpu --devices 4
advised plan -p byteps-nvlink -m model.csv --devices 4 --strategy coarse -- plan -p byteps-nvlink -m model.csv --places gpu --devices 4 --strategy coarse
advised plan -p byteps-nvlink -m model.csv --inside --workers 4 -- plan -p byteps-nvlink -m model.csv --inside
advised plan -p byteps-cluster -m model.csv --places gpu --workers 4 -- plan -p byteps-cluster -m model.csv --workers 4
advised "${cluster[@]}" --gpu-direct=no -- "${cluster[@]}"
# ... over which links
advised "${cluster[@]}" --transport 'tcp;ofi_rxm' -- "${cluster[@]}" --transport 'tcp;ofi_rxm' --port-bandwidth 100Gb/s
advised "${torus[@]}" -- "${torus[@]}" --strategy torus --shape 2x2x2
advised "${torus[@]}" --strategy torus -- "${torus[@]}" --strategy torus --shape 2x2x2
advised "${torus[@]}" --strategy torus --shape 2x2x2 --port-bandwidth 10Gb/s -- "${torus[@]}" --strategy torus --shape 2x2x2
advised "${torus[@]}" --strategy torus --shape 2x2x2 --workers 4 -- "${torus[@]}" --strategy torus --shape 2x2x2
advised "${torus[@]}" --strategy ring --shape 2x2x2 -- "${torus[@]}" --strategy torus --shape 2x2x2
advised "${torus[@]}" --strategy torus --shape 2x2x2 --optimizer sgd -- "${torus[@]}" --strategy torus --shape 2x2x2
# ... what it is for
advised "${cluster[@]}" --gradient-bound 3 -- "${cluster[@]}" --gradient-bound 3 --reduction fixed:24
advised "${cluster[@]}" --update server -- "${cluster[@]}" --update server --optimizer sgd
advised "${cluster[@]}" --order priority -- "${cluster[@]}" --order priority "${pass[@]}"
advised "${cluster[@]}" --servers 4 --strategy coarse --reduction fixed:24 -- "${cluster[@]}" --servers 4 --strategy coarse
advised "${cluster[@]}" --servers 4 --strategy dense --optimizer sgd --async \
  -- "${cluster[@]}" --servers 4 --strategy dense --optimizer sgd
advised "${cluster[@]}" --optimizer sgd --reduction fixed:24 -- "${cluster[@]}" --reduction fixed:24
advised "${cluster[@]}" --servers 4 --queues fcfs -- "${cluster[@]}" --servers 4 --queues fcfs --strategy coarse
advised "${cluster[@]}" --collective all-gather --cutting tensors -- "${cluster[@]}" --collective all-gather
advised "${cluster[@]}" --collective broadcast "${pass[@]}" -- "${cluster[@]}" --collective broadcast
advised "${cluster[@]}" --collective reduce-scatter --root 2 -- "${cluster[@]}" --collective reduce-scatter
# ... for other programs
ok plan -p byteps-cluster -m model.csv --workers 4 -o plan.json
advised export plan.json --format msccl --profile byteps-cluster -o plan.xml -- export plan.json --format goal --profile byteps-cluster -o plan.goal
ok plan -p byteps-cluster -m model.csv --workers 4 --cutting tensors -o tensors.json
exits 2 export tensors.json --format msccl -o no.xml
said=$(grep -oE -- '--cutting fused --part-bytes [0-9]+' "$last/stderr")
# shellcheck disable=SC2086
ok plan -p byteps-cluster -m model.csv --workers 4 --strategy ring $said -o fused.json
ok export fused.json --format msccl -o fused.xml
ok plan -p byteps-cluster -m model.csv --workers 8 --servers 4 --strategy byteps_split -o split.json
exits 2 export split.json --format nccl-tuner -o no.csv
stderr_has 'plan with --strategy ring'
ok plan -p byteps-cluster -m model.csv --workers 8 --servers 4 --strategy ring -o ring.json
ok export ring.json --format nccl-tuner -o tuner.csv
absent no.xml no.csv
advised simulate ring.json --coarsen none --time 1us -- simulate ring.json --coarsen auto --time 60s

# import: what a log does not say
logs=$source_dir/tests/golden/import
advised import "$logs/osu-allgather-c5n.txt" -o a.json -- import "$logs/osu-allgather-c5n.txt" --ranks 16 -o a.json
advised import "$logs/osu-latency-c5n.txt" -o b.json -- import "$logs/osu-latency-c5n.txt" --machine m0,m1 -o b.json
sed 's/ type  / type redop root /; s/ float / float none -1 /' "$logs/nccl-all-gather-8xa100.log" > unnamed.log
advised import unnamed.log -o c.json -- import unnamed.log --collective all_gather -o c.json

# run: what a plan does not have
ok plan -p byteps-cluster -m model.csv --workers 2 -o sums.json
exits 2 run sums.json --checkpoint saved
stderr_has 'plan with --optimizer'
ok plan -p byteps-cluster -m model.csv --workers 2 --optimizer sgd -o steps.json
ok run steps.json --checkpoint saved --check
exits 2 run sums.json --compute gemm_256
stderr_has '--forward and --backward'
ok plan -p byteps-cluster -m model.csv --workers 2 "${pass[@]}" -o passes.json
ok run passes.json --compute gemm_256 --check

# show and check
advised show byteps-nvlink --what matrix -- show byteps-nvlink --what matrix --plot links.svg
advised check byteps-nvlink -o other.json -- check byteps-nvlink

# solve
split=(solve split --bytes 4MB)
advised "${split[@]}" --bandwidth 1GB/s -- "${split[@]}" --bandwidth 1GB/s --workers 2
advised "${split[@]}" -- "${split[@]}" --worker-bandwidths 1GB/s,1GB/s
advised "${split[@]}" --workers 2 -- "${split[@]}" --workers 2 --bandwidth 1GB/s
advised "${split[@]}" --worker-bandwidths 1GB/s,1GB/s --servers 1 \
  -- "${split[@]}" --worker-bandwidths 1GB/s,1GB/s --servers 1 --server-bandwidths 1GB/s
advised "${split[@]}" --workers 3 --worker-bandwidths 1GB/s,1GB/s -- "${split[@]}" --worker-bandwidths 1GB/s,1GB/s
dual=(--workers 2 --gpu-bandwidth 4GB/s --client-bandwidth 1GB/s --proxy-bandwidth 1GB/s --forward 1s --backward 1s)
advised solve dual-sync "${dual[@]}" \
  -- solve dual-sync "${dual[@]}" --workload resnet50
advised solve dense --workers 2 --bytes 1MB -- solve dense --workers 2 --bytes 1MB --bandwidth 1GB/s
advised solve memory --gpu-memory 16GB --activations 1MB -- solve memory --gpu-memory 16GB --activations 1MB --workload resnet50
placement=(solve placement --workload resnet50 --cores 4)
advised "${placement[@]}" --nodes 2 -- "${placement[@]}" --nodes 2 --interfaces 2
advised "${placement[@]}" --interfaces 2 --part-bytes auto \
  -- "${placement[@]}" --interfaces 2 --part-bytes auto --interface-bandwidth 1GB/s --write-cost 1us
overlap=(solve overlap --shape 4x4x4)
advised "${overlap[@]}" -- "${overlap[@]}" --workload resnet50
advised "${overlap[@]}" --workload resnet50 --profile byteps-cluster -- "${overlap[@]}" --workload resnet50 --profile ace-torus
advised "${overlap[@]}" --workload resnet50 --bytes 1MB -- "${overlap[@]}" --workload resnet50
advised "${overlap[@]}" --workload resnet50 --contention gemm_256 \
  -- "${overlap[@]}" --workload resnet50 --computation-factor 1.1 --communication-factor 1.2
