# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# Checkpoints while iterations go on, and runs that go on from them: whatever is killed when, the parameters are those
# of a run that was left alone. SEED and KILLS in the environment repeat or extend the kills;
# NIGHTLY=1 is a hundred of them.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,100001,fp32\ntail,50000,fp32\n' > model.csv
plan() { # FILE WORKERS PART ARGUMENTS
  ok plan --profile byteps-cluster --workload model.csv --workers "$2" --servers 1 --port-bandwidth 1GB/s \
    --part-bytes "$3" --transport host --strategy byteps_split "${@:4}" -o "$1"
}
plan plan.json 2 64KiB --optimizer adam --update server
run() { ok run plan.json --tolerance 1e9% "$@"; }
bad() { refused "$1" run plan.json --tolerance 1e9% "${@:2}"; }

# The schedules that save and restore are proved with the others.
run --check --checkpoint saved
stdout_has every
absent saved

run -n 21 --json
alone=$(grep -A1 '"parameters"' "$last/stdout" | grep -o 'sha256:[0-9a-f]*')
[[ $alone ]] || fail "the report lacks the parameters' digest"

# Seven steps, one saved after the fifth; twelve, one after the tenth. One at a time: iterations this short would not wait
# for the first to be on disk.
run -n 5 --checkpoint saved --checkpoint-every 5
stdout_has '1.717 MiB' 'every 5'
stdout_has "after 7 steps"
stdout_matches "measured .* with one, .* without"
run -n 10 --checkpoint saved --checkpoint-every 5 --resume saved
stdout_has 'after 12' 'resumed after 5' '1.717 MiB' 'every 5'
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
stdout_has "$alone after 23" "resumed after 10"
# In a terminal the steps that are made again are seen to go on.
reckon_tty 80 run plan.json --tolerance 1e9% -n 21 --resume saved
expect_status 0
stdout_matches '100 % 0 s left  step 10 of 10 made again, to compare'
run -n 21 --resume saved --checkpoint saved --checkpoint-every 20
stdout_has "$alone after 23" "resumed after 10"
[[ $(echo saved/*.complete) == "saved/step-00000010.complete saved/step-00000020.complete" ]] || fail "$(ls saved)"
[[ $(ls saved | wc -l) == 9 ]] || fail "$(ls saved)"
bad --iterations -n 3 --resume saved
exits 2 run plan.json --tolerance 1e9% -n 3 --checkpoint saved
stderr_matches "saved on .* holds a checkpoint after step 20 already; --resume saved"

# Torn, corrupted or missing: named, and the one before is used; nothing intact is an error.
damaged() { # WHAT EXPECTED-IN-WARNING; changes the copy in ./saved
  run -n 21 --resume saved
  stderr_has 'step 10'
  stderr_has "$2"
  stdout_has "$alone after 23" "resumed after 5"
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
bad '2 checkpoints' --resume saved
mkdir empty
bad complete --resume empty
bad nowhere --resume nowhere

# Another plan's, another number of ranks.
again
plan other.json 2 32KiB --optimizer adam --update server
exits 2 run other.json --resume saved
stderr_matches "is a checkpoint of plan sha256:[0-9a-f]{64}, and this is plan sha256:[0-9a-f]{64}"
plan other.json 3 64KiB --optimizer adam --update server
refused checkpoint run other.json --resume saved
plan other.json 2 64KiB
for option in --checkpoint --resume; do
  refused "plan with --optimizer" run other.json $option saved
done
plan other.json 2 64KiB --async
refused "plan without --async" run other.json --checkpoint elsewhere
bad --checkpoint-every --checkpoint-every 3
exits 2 run plan.json --tolerance 1e9% --checkpoint elsewhere --checkpoint-every 0

# What a killed process left on a file system without nameless files goes with the next run.
again
touch saved/step-00000015.rank-0001.bin.4711.0.tmp saved/step-00000015.complete.4711.1.tmp saved/notes.tmp
run -n 21 --resume saved --checkpoint saved
[[ $(echo saved/*.tmp) == saved/notes.tmp ]] || fail "left: $(ls saved)"

# Nobody else reads them, whatever the umask.
[[ $(stat -c %a saved/step-* saved/lock | sort -u) == 600 ]] || fail "$(ls -l saved)"

# A folder that cannot be written to.
if [[ $(id -u) != 0 ]]; then
  mkdir closed && chmod a-w closed
  exits 4 run plan.json --tolerance 1e9% -n 8 --checkpoint closed --checkpoint-every 4
  stderr_says closed/lock
fi

# A file of somebody else's that is called lock, also at the end of a link, stays as it is.
mkdir theirs linked emptied
echo "years of work" | tee theirs/lock > precious
ln -s ../precious linked/lock
touch blank # as a lock that nobody holds
ln -s ../blank emptied/lock
mkdir twice foreign # a second name of somebody's lock; another user's, who could hold it for ever
cp saved/lock of-another
ln of-another twice/lock
folders="theirs linked emptied twice"
if [[ $(id -u) == 0 ]]; then
  touch foreign/lock
  chown 65534 foreign/lock
  folders+=" foreign"
fi
for folder in $folders; do
  exits 2 run plan.json --tolerance 1e9% -n 8 --checkpoint $folder
  stderr_has "$folder/lock"
done
[[ $(cat theirs/lock precious) == $'years of work\nyears of work' && ! -s blank && ! -s foreign/lock ]] &&
  cmp saved/lock of-another || fail "somebody's file was written to"

# Two runs at once: the second is refused, in one message that names the first, and the first goes on. Its death, however it
# comes, gives the folder back.
"$RECKON" run plan.json -n 1000000 --checkpoint busy --checkpoint-every 5 2> busy.err > busy.out &
job=$!
at_end 'kill -KILL $job 2> /dev/null'
wait_until 'compgen -G "busy/*.complete" > /dev/null' $job
for resume in "" "--resume busy"; do
  exits 2 run plan.json --tolerance 1e9% -n 5 --checkpoint busy $resume
  stderr_matches "^reckon: error: busy: another run \(process [0-9]+ on .*\) writes its checkpoints there; wait for its end"
  [[ $(grep -c "error" "$last/stderr") == 1 ]] || fail "more than one message"
done
kill -0 $job || fail "the first run did not go on: $(cat busy.err)"
kill -KILL $job
wait $job || true
flock -w 120 busy/lock true || fail "a rank of the killed run still holds busy" # it may wait for the disk
rm busy/step-*
run -n 5 --checkpoint busy

kills=${KILLS:-${NIGHTLY:+100}}
mkdir kills && cd kills
python3 "$source_dir/tests/support/kill_and_resume.py" "$RECKON" --kills "${kills:-4}" --seed "${SEED:-20240607}" \
  > ../kills.out 2>&1 || fail "$(cat ../kills.out)"
cat ../kills.out
