# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# One plan on four machines, or four ranks here, under every launcher: the variables of torchrun and its like, and PMIx.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

made=()
left_out=()
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT LOCAL_RANK LOCAL_WORLD_SIZE

printf 'name,elements,dtype\nhead,600001,fp32\nbody,300000,bf16\ntail,250000,fp16\n' > model.csv
plan_over() { # TRANSPORT FILE
  ok plan --profile byteps-cluster --workload model.csv --part-bytes 64KiB --transport "$1" \
    --workers 3 --servers 1 --port-bandwidth 50MB/s --strategy byteps_split -o "$2"
}
plan_over host here.json
plan_over 'tcp;ofi_rxm' cluster.json
run=(run -n 3 --tolerance 1e9% --step-timeout 60s --color never)

# COMMAND...: exit code 0, one report, every element right, and nobody but rank 0 speaks.
works() { # NAME COMMAND...
  run_as_last timeout 300 "${@:2}"
  expect_status 0
  [[ $(grep -c "every element correct" "$last/stdout") == 1 ]] || fail "$1: not one report"
  made+=("$1")
}

# --- variables ---------------------------------------------------------------------------------------------------------
by_hand() { # a shell loop, as over ssh
  local rank pids=() code=0
  export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 RECKON_JOB_TOKEN=t0ken
  for rank in 1 2 3; do
    RANK=$rank "$RECKON" "${run[@]}" here.json &
    pids+=($!)
  done
  RANK=0 "$RECKON" "${run[@]}" here.json || code=$?
  wait "${pids[@]}" || code=$?
  return $code
}
export -f by_hand
export RECKON
MASTER_PORT=$(free_port) works "shell loop" bash -c "run=(${run[*]}); by_hand"

# torchrun's variables; its agent keeps MASTER_PORT for itself.
cat > as_torchrun.py << 'EOF'
import os, secrets, socket, subprocess, sys
agent = socket.create_server(("127.0.0.1", 0))
size, command = int(sys.argv[1]), sys.argv[2:]
common = dict(os.environ, WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size), GROUP_RANK="0", MASTER_ADDR="localhost",
              MASTER_PORT=str(agent.getsockname()[1]), TORCHELASTIC_USE_AGENT_STORE="True", TORCHELASTIC_RUN_ID="none",
              RECKON_JOB_TOKEN=secrets.token_hex(16))
ranks = [subprocess.Popen(command, env=dict(common, RANK=str(r), LOCAL_RANK=str(r))) for r in range(size)]
sys.exit(max(r.wait() for r in ranks))
EOF
if ! command -v torchrun > /dev/null; then
  left_out+=("torchrun itself is not installed")
elif ! torchrun --no_python --nproc_per_node 1 true > torchrun.log 2>&1; then # as Debian 12's, with its Python
  left_out+=("the torchrun that is installed starts no program: $(tail -1 torchrun.log)")
else
  works torchrun torchrun --no_python --nproc_per_node 4 "$RECKON" "${run[@]}" here.json
fi
works "torchrun's variables" python3 as_torchrun.py 4 "$RECKON" "${run[@]}" here.json
# "localhost" is here also where neither a file nor a server knows it.
if [[ $(id -u) == 0 ]] && unshare -m true 2> /dev/null; then
  works "torchrun's variables without /etc/hosts" unshare -m sh -c 'mount --bind /dev/null /etc/hosts &&
    mount --bind /dev/null /etc/resolv.conf && exec "$0" "$@"' python3 as_torchrun.py 4 "$RECKON" "${run[@]}" here.json
else
  left_out+=("/etc/hosts cannot be hidden")
fi

# --- PMIx --------------------------------------------------------------------------------------------------------------
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 \
  PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
has_pmix=yes
if [[ $(ldd "$RECKON") != *libpmix* ]]; then # grep -q would end ldd early, and with it the pipe
  has_pmix=no
  left_out+=("this build has no PMIx")
fi
for launcher in mpirun prterun; do
  if ! command -v $launcher > /dev/null; then
    left_out+=("$launcher is not installed")
  elif [[ $has_pmix == yes ]]; then
    oversubscribe=(--oversubscribe)
    [[ $launcher == mpirun ]] || oversubscribe=(--map-by :OVERSUBSCRIBE)
    works "$launcher" $launcher "${oversubscribe[@]}" -n 4 "$RECKON" "${run[@]}" here.json
    # Another number than the plan's: an error, not four jobs.
    run_as_last timeout 300 $launcher "${oversubscribe[@]}" -n 3 "$RECKON" "${run[@]}" here.json
    expect_status 2
    stderr_has "the plan is for 4 ranks and the launcher started 3"
  elif [[ $launcher == mpirun ]]; then
    run_as_last timeout 300 mpirun --oversubscribe -n 4 "$RECKON" "${run[@]}" here.json
    expect_status 3
    stderr_has "this build has no PMIx"
  fi
done
if ! command -v srun > /dev/null; then
  left_out+=("srun is not installed")
elif ! timeout 10 sinfo > /dev/null 2>&1; then
  left_out+=("srun has no controller")
elif [[ $has_pmix == yes ]]; then
  works srun srun --mpi=pmix --overcommit -n 4 "$RECKON" "${run[@]}" here.json
fi

# --- machines ----------------------------------------------------------------------------------------------------------
if no_netlab > why; then
  left_out+=("$(cat why)")
else
  netlab up --workers 3 --servers 1 --rate 400mbit
  works "the variables on four machines" "$source_dir/scripts/netlab" run -- "$RECKON" "${run[@]}" cluster.json
  if [[ $has_pmix == yes ]] && command -v mpirun > /dev/null; then
    # ssh's place is taken by entering the machine's namespaces.
    cat > agent << EOF
#!/bin/sh
host=\$1
shift
exec nsenter --net=/run/netns/$NETLAB-\$host unshare --uts sh -c 'hostname "\$0"; exec sh -c "\$1"' "\$host" "\$*"
EOF
    chmod +x agent
    printf '%s slots=1\n' w0 w1 w2 s0 > hosts
    works "mpirun on four machines" "$source_dir/scripts/netlab" exec w0 -- \
      mpirun --hostfile hosts --mca plm_rsh_agent "$PWD/agent" --mca oob_tcp_if_include 10.77.0.0/24 -n 4 \
      "$RECKON" "${run[@]}" cluster.json
  fi
fi

echo "${#made[@]} launches: $(printf '%s; ' "${made[@]}")"
[[ ${#left_out[@]} == 0 ]] || echo "left out: $(printf '%s; ' "${left_out[@]}")"
