# SPDX-License-Identifier: Apache-2.0
# Sourced by every script here: all that tests/cli/common.sh gives, and
#
#   vm run|pair ARGUMENTS...     scripts/vmlab; its exit code and streams as those of the last run
#   make_plans ARGUMENTS...      STRATEGY.json for verbs;ofi_rxm, one for each of $strategies
#   inside.sh                    to be sourced inside the machine: sent, endless
source "$(dirname "${BASH_SOURCE[0]}")/../cli/common.sh"

transport='verbs;ofi_rxm'
strategies='ring ps_colocated ps_noncolocated byteps_split'

code=0
"$source_dir/scripts/vmlab" setup > "$last/setup" 2>&1 || code=$?
[[ $code != 3 ]] || skip "$(sed -n 's/^vmlab: //p' "$last/setup" | tail -n 1)"
[[ $code == 0 ]] || fail "vmlab setup: exit code $code: $(cat "$last/setup")"

vm() {
  printf '%q ' vmlab "$@" > "$last/command"
  status=0
  "$source_dir/scripts/vmlab" "$@" > "$last/stdout" 2> "$last/stderr" || status=$?
  echo "$status" > "$last/status"
}

make_plans() {
  local strategy
  printf 'name,elements,dtype\nhead,100001,fp32\nbody,75000,bf16\ntail,62500,fp16\n' > model.csv
  for strategy in $strategies; do
    reckon plan --profile byteps-cluster --workload model.csv --part-bytes 32KiB --transport "$transport" \
      --port-bandwidth 1GB/s --strategy "$strategy" "$@" -o "$strategy.json"
    expect_status 0
  done
}

cat > inside.sh << END
RECKON=$(printf %q "$RECKON") strategies='$strategies'
$(declare -p transport)
END
cat >> inside.sh << 'END'
# Packets that the RDMA device has sent: what shows that it was used.
sent() { cat "/sys/class/infiniband/${1:-rxe0}/ports/1/hw_counters/sent_pkts"; }
# Waits until more than so many packets have passed since the count given.
sent_since() { until (($(sent) > $1 + $2)); do sleep 0.1; done; }
END
