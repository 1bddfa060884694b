# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# Checkpoints while iterations go on, and runs that go on from them: whatever is killed when, the parameters are those
# of a run that was left alone. SEED and KILLS in the environment repeat or extend the kills.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

printf 'name,elements,dtype\nhead,100001,fp32\ntail,50000,fp32\n' > model.csv
plan() { # FILE WORKERS PART ARGUMENTS
  reckon plan --profile byteps-cluster --workload model.csv --workers "$2" --servers 1 --port-bandwidth 1GB/s \
    --part-bytes "$3" --transport host --strategy byteps_split "${@:4}" -o "$1"
  expect_status 0
}
plan plan.json 2 64KiB --optimizer adam --update server
run() { reckon run plan.json --tolerance 1e9% "$@"; }

# The schedules that save and restore are proved with the others.
run --check --checkpoint saved
expect_status 0
stdout_has "every parameter stepped and saved exactly once"
[[ ! -e saved ]] || fail "--check made the folder"

run -n 21 --json
expect_status 0
alone=$(grep -A1 '"parameters"' "$last/stdout" | grep -o 'sha256:[0-9a-f]*')
[[ $alone ]] || fail "the report lacks the parameters' digest"

# Seven steps, one saved after the fifth; twelve, one after the tenth. One at a time: iterations this short would not wait
# for the first to be on disk.
run -n 5 --checkpoint saved --checkpoint-every 5
expect_status 0
stdout_has "after 7 steps"
stdout_has "1 of 1.717 MiB, one every 5 steps, on disk in"
stdout_matches "measured .* with one, .* without"
run -n 10 --checkpoint saved --checkpoint-every 5 --resume saved
expect_status 0
stdout_has "after 12 steps, resumed after 5"
stdout_has "1 of 1.717 MiB, one every 5 steps, on disk in"
ls saved > files
diff - files << 'EOF' || fail "these are in the folder"
lock
step-00000005.complete
step-00000005.rank-0000.bin
step-00000005.rank-0001.bin
step-00000005.rank-0002.bin
step-00000010.complete
step-00000010.rank-0000.bin
step-00000010.rank-0001.bin
step-00000010.rank-0002.bin
EOF
cp -r saved twelve
run -n 21 --resume saved
expect_status 0
stdout_has "$alone after 23 steps, resumed after 10"
# In a terminal the steps that are made again are seen to go on.
reckon_tty 80 run plan.json --tolerance 1e9% -n 21 --resume saved
expect_status 0
stdout_matches '100 % 0 s left  step 10 of 10 made again, to compare'
run -n 21 --resume saved --checkpoint saved --checkpoint-every 20
expect_status 0
stdout_has "$alone after 23 steps, resumed after 10"
[[ $(echo saved/*.complete) == "saved/step-00000010.complete saved/step-00000020.complete" ]] || fail "$(ls saved)"
[[ $(ls saved | wc -l) == 9 ]] || fail "$(ls saved)"
run -n 3 --resume saved
expect_status 2
stderr_has "ask for more --iterations"
run -n 3 --checkpoint saved
expect_status 2
stderr_matches "saved on .* holds a checkpoint after step 20 already; --resume saved"

# Torn, corrupted or missing: named, and the one before is used; nothing intact is an error.
damaged() { # WHAT EXPECTED-IN-WARNING; changes the copy in ./saved
  run -n 21 --resume saved
  expect_status 0
  stderr_has "the checkpoint after step 10 is not used"
  stderr_has "$2"
  stdout_has "$alone after 23 steps, resumed after 5"
}
again() { rm -rf saved && cp -r twelve saved; }
again
truncate -s -1 saved/step-00000010.rank-0001.bin
damaged "the last byte is missing" "step-00000010.rank-0001.bin: is torn"
again
printf 'x' | dd of=saved/step-00000010.rank-0002.bin bs=1 seek=5000 conv=notrunc status=none
damaged "a byte has changed" "step-00000010.rank-0002.bin: is corrupted"
again
rm saved/step-00000010.rank-0000.bin
damaged "a part is missing" "step-00000010.rank-0000.bin"
again
cp saved/step-00000005.rank-0000.bin saved/step-00000010.rank-0000.bin
damaged "a part of another step" "after another step than its name says"
again
: > saved/step-00000010.complete
damaged "an empty manifest" "step-00000010.complete: is torn"
for file in saved/*.bin; do truncate -s 100 "$file"; done
run --resume saved
expect_status 2
stderr_has "none of its 2 checkpoints is intact"
mkdir empty
run --resume empty
expect_status 2
stderr_has "there is no complete checkpoint in it"
run --resume nowhere
expect_status 2
stderr_has "nowhere: there is no such folder"

# Another plan's, another number of ranks.
again
plan other.json 2 32KiB --optimizer adam --update server
reckon run other.json --resume saved
expect_status 2
stderr_matches "is a checkpoint of plan sha256:[0-9a-f]{64}, and this is plan sha256:[0-9a-f]{64}"
plan other.json 3 64KiB --optimizer adam --update server
reckon run other.json --resume saved
expect_status 2
stderr_has "is a checkpoint of 3 ranks, and this plan has 4"
plan other.json 2 64KiB
for option in --checkpoint --resume; do
  reckon run other.json $option saved
  expect_status 2
  stderr_has "plan with --optimizer"
done
plan other.json 2 64KiB --async
reckon run other.json --checkpoint elsewhere
expect_status 2
stderr_has "plan without --async"
run --checkpoint-every 3
expect_status 2
stderr_has "--checkpoint-every requires --checkpoint; give both"
run --checkpoint elsewhere --checkpoint-every 0
expect_status 2

# What a killed process left on a file system without nameless files goes with the next run.
again
touch saved/step-00000015.rank-0001.bin.4711.0.tmp saved/step-00000015.complete.4711.1.tmp saved/notes.tmp
run -n 21 --resume saved --checkpoint saved
expect_status 0
[[ $(echo saved/*.tmp) == saved/notes.tmp ]] || fail "left: $(ls saved)"

# A folder that cannot be written to.
if [[ $(id -u) != 0 ]]; then
  mkdir closed && chmod a-w closed
  run -n 8 --checkpoint closed --checkpoint-every 4
  expect_status 4
  stderr_has "cannot open closed/lock: Permission denied"
fi

# Two runs at once: the second is refused, in one message that names the first, and the first goes on. Its death, however it
# comes, gives the folder back.
"$RECKON" run plan.json -n 1000000 --checkpoint busy --checkpoint-every 5 2> busy.err > busy.out &
job=$!
at_end 'kill -KILL $job 2> /dev/null'
for _ in $(seq 3000); do
  ! compgen -G "busy/*.complete" > /dev/null || break
  kill -0 $job || fail "$(cat busy.err)"
  sleep 0.01
done
for resume in "" "--resume busy"; do
  run -n 5 --checkpoint busy $resume
  expect_status 2
  stderr_matches "^reckon: error: busy: another run \(process [0-9]+ on .*\) writes its checkpoints there; wait for its end"
  [[ $(grep -c "error" "$last/stderr") == 1 ]] || fail "more than one message"
done
kill -0 $job || fail "the first run did not go on: $(cat busy.err)"
kill -KILL $job
wait $job || true
flock -w 120 busy/lock true || fail "a rank of the killed run still holds busy" # it may wait for the disk
rm busy/step-*
run -n 5 --checkpoint busy
expect_status 0

mkdir kills && cd kills
python3 "$source_dir/tests/support/kill_and_resume.py" "$RECKON" --kills "${KILLS:-20}" --seed "${SEED:-20240607}" \
  > ../kills.out 2>&1 || fail "$(cat ../kills.out)"
cat ../kills.out
