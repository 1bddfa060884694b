# SPDX-License-Identifier: Apache-2.0
# docs/security.md: what those who do not know a job's token can do, and where the token goes.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,250000,fp16\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --port-bandwidth 1GB/s --strategy byteps_split --part-bytes 64KiB \
   --transport host -o plan.json
digest=$(sha256sum plan.json | cut -d' ' -f1)

# stranger PORT TOKEN HELLO: calls rank 0, answers its nonce with that hello, and prints what it is told then.
stranger() {
  python3 - "$@" << 'END'
import hashlib, hmac, json, socket, struct, sys, time
port, token, hello = int(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]
for _ in range(1000):
    try:
        door = socket.create_connection(("127.0.0.1", port), timeout=60)
        break
    except ConnectionRefusedError:
        time.sleep(0.02)
def bytes_of(count):
    got = b""
    while len(got) < count and (piece := door.recv(count - len(got))):
        got += piece
    return got
length = struct.unpack("<I", bytes_of(5)[1:])[0]
nonce = bytes_of(length)
text = hello.encode()
text = hmac.new(token, b"other rank:" + nonce + b":" + text, hashlib.sha256).hexdigest().encode() + text
door.sendall(b"d" + struct.pack("<I", len(text)) + text)
try:
    sys.stdout.buffer.write(bytes_of(10000))
except ConnectionResetError:
    pass
END
}

# hello KEY=VALUE...: what rank 1 says of itself, with other values.
hello() { python3 -c '
import json, sys
hello = {"reckon": sys.argv[1], "rank": 1, "size": 3, "plan": sys.argv[2], "host": "ghost", "nonce": "n"}
hello.update(pair.split("=", 1) for pair in sys.argv[3:])
print(json.dumps(hello))' "$("$RECKON" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)" "sha256:$digest" "$@"; }

export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1
start() { # RANK ARGUMENTS...: in the background; sets pid
  RANK=$1 "$RECKON" run plan.json -n 3 --tolerance 1e9% "${@:2}" > "out$1" 2> "err$1" &
  pid=$!
}

# Whoever does not know the token is told nothing and harms nothing, also where he knows all the rest.
export RECKON_JOB_TOKEN=t0ken-of-this-job
MASTER_PORT=$(free_port)
export MASTER_PORT
all=(-vv --json -o report.json --trace trace.json)
start 0 "${all[@]}"
root=$pid
for secret in "" t0ken-of-that-job; do
  stranger "$MASTER_PORT" "$secret" "$(hello)" > told
  [[ ! -s told ]] || fail "a stranger was told: $(cat told)"
done
# A rank with another token ends; the job goes on.
RECKON_JOB_TOKEN=other RANK=1 exits 4 run plan.json -n 3
stderr_has RECKON_JOB_TOKEN
start 1 "${all[@]}"
others=($pid)
start 2 "${all[@]}"
others+=($pid)
for one in $root "${others[@]}"; do wait "$one" || fail "the job ended: $(cat err0 err1 err2)"; done
grep -q 'refused a connection from 127.0.0.1' err0 || fail "rank 0 says nothing of strangers: $(cat err0)"

# The token is in nothing that the job writes or says.
grep -rlF "$RECKON_JOB_TOKEN" . && fail "the token is there"

# Nor do programs that reckon starts have it.
mkdir programs
printf '#!/bin/sh\nenv > %q\n' "$work/environment" > programs/gnuplot
chmod +x programs/gnuplot
PATH=$work/programs:$PATH reckon show report.json --plot plot.svg
if ! grep -q 'draws no pictures' "$last/stderr"; then
  grep -q WORLD_SIZE environment || fail "no environment"
  ! grep -q RECKON_JOB_TOKEN environment || fail "gnuplot knows the token"
  rm environment
fi

# Without a token a stranger with another plan, version or size neither ends the job nor learns the plan's digest.
unset RECKON_JOB_TOKEN
MASTER_PORT=$(free_port)
start 0
root=$pid
for other in plan=sha256:0 reckon=9.9.9 size=5 rank=0; do
  stranger "$MASTER_PORT" "" "$(hello $other)" > told
  [[ ! -s told ]] || fail "a stranger was told: $(cat told)"
done
start 1
others=($pid)
start 2
others+=($pid)
for one in $root "${others[@]}"; do wait "$one" || fail "the job ended: $(cat err0 err1 err2)"; done
grep -q 'another plan' err0 || fail "rank 0 does not say who differs: $(cat err0)"

# A transport that is not here is found before the others are waited for.
RANK=0 exits 3 run plan.json --transport pigeon --step-timeout 1e9s
stderr_has pigeon
