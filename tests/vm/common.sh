# SPDX-License-Identifier: Apache-2.0
# Sourced by every script here: all that tests/support/shell.sh gives, and
#
#   vm run|pair ARGUMENTS... < SCRIPT   runs the script of standard input in a machine of scripts/vmlab, with the
#                                variables that $known names, sent and sent_since; its exit code and streams as those of
#                                the last run
#   make_model                   model.csv: 675004 bytes of all three element types
#   make_plans ARGUMENTS...      of it, STRATEGY.json for verbs;ofi_rxm, one for each of $strategies
source "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

transport='verbs;ofi_rxm'
strategies='ring ps_colocated ps_noncolocated byteps_split'
known='RECKON transport strategies'

code=0
"$source_dir/scripts/vmlab" setup > "$last/setup" 2>&1 || code=$?
[[ $code != 3 ]] || skip "$(sed -n 's/^vmlab: //p' "$last/setup" | tail -n 1)"
[[ $code == 0 ]] || fail "vmlab setup: exit code $code: $(cat "$last/setup")"

make_model() { printf 'name,elements,dtype\nhead,100001,fp32\nbody,75000,bf16\ntail,62500,fp16\n' > model.csv; }
make_plans() {
  local strategy
  make_model
  for strategy in $strategies; do
    ok plan --profile byteps-cluster --workload model.csv --part-bytes 32KiB --transport "$transport" \
      --port-bandwidth 1GB/s --strategy "$strategy" "$@" -o "$strategy.json"
  done
}

# For inside the machine: packets that the RDMA device has sent, which show that it was used; and to wait until more than
# so many have passed since the count given.
sent() { cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts; }
sent_since() { until (($(sent) > $1 + $2)); do sleep 0.1; done; }

vm() {
  {
    declare -p $known
    declare -f sent sent_since
    cat
  } > inside.sh
  run_as_last "$source_dir/scripts/vmlab" "$1" --timeout 500 "${@:2}" -- bash -c '. ./inside.sh'
}
