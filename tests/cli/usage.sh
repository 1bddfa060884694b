# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line end with 2 and say what is wrong on standard error; help and version are results.
source "$(dirname "$0")/../support/shell.sh"

ok --version
stdout_matches '^reckon [0-9]+\.[0-9]+\.[0-9]+$'
stderr_empty

# Loaded when it is wanted: what comes with it costs every start 0.2 s (lib/movers/libfabric.hpp).
! ldd "$RECKON" | grep -E 'libfabric|libcuda' || fail "linked to libfabric or CUDA"

ok --help
stdout_has 'Exit status'
stderr_empty

exits 2
stdout_empty

exits 2 no-such-command
stdout_empty

# What could not be written was not done.
for command in 'solve torus --shape 4x1x1 --local-bandwidth 400GB/s' 'solve overlap -m gnmt --shape 2x2x1 --json' \
  'probe --list'; do
  run_as_last sh -c "exec '$RECKON' $command > /dev/full"
  expect_status 4
  stderr_has 'cannot write'
done

# What the parser refuses reads as every other error, and what does not exist is said before what is missing.
refused "'torus'?" solve toruss
refused "'sovle'" sovle
refused "'--shap'" solve torus --shap 4x4x4
refused "'--shap'" solve torus --shap=4x4x4
refused "'twice'" solve torus --shape 4x4x4 twice
refused --shape solve torus
refused '--cores = 2.5' solve placement --cores 2.5

# A device without an end is no document, whoever reads it.
refused /dev/zero show /dev/zero
refused '/dev/zero' plan -p /dev/zero -m resnet50

# Links that end nowhere, whoever reads them.
ln -s loop loop
for command in 'show loop' 'plan -p loop -m resnet50' 'check loop' 'diff loop loop'; do
  refused cannot $command
done

refused '--workers -1' plan -p byteps-cluster -m resnet50 --workers -1
refused "--workers '': must be" plan -p byteps-cluster -m resnet50 --workers ''

# What is there and is not what a command writes stays there; what it writes itself is replaced.
printf 'name,elements,dtype\nx,1000,fp32\n' > mine.csv
cp mine.csv saved.csv
planned=(plan --profile byteps-cluster --workload mine.csv --workers 2 --servers 0)
for file in mine.csv saved.csv; do
  refused "$file" "${planned[@]}" -o $file
done
refused --output "${planned[@]}" -o saved.csv
ok "${planned[@]}" -o plan.json
ok "${planned[@]}" -o plan.json
refused saved.csv run plan.json -o saved.csv
refused --trace run plan.json --trace saved.csv
refused saved.csv simulate plan.json -o saved.csv
refused saved.csv check -o saved.csv
refused saved.csv probe -o saved.csv
refused saved.csv export plan.json --format goal -o saved.csv
ok export plan.json --format goal -o plan.goal
ok export plan.json --format goal -o plan.goal
ok "${planned[@]}" -o /dev/null
cp plan.json two.json
refused two.json run plan.json -o two.json
cmp mine.csv saved.csv || fail "the user's file was replaced"

# A command or an option that has got another name says which.
for now in 'plan --tolerance=--bandwidth-slack' 'plan --cores=--processors' 'run --cores=--processors' 'diff --tolerance=--threshold' \
  'diff --latency-tolerance=--latency-threshold' 'show -t=--case' 'solve partition --tolerance=--bandwidth-slack' \
  'solve locality --tolerance=--threshold' 'solve ring --order=--ring' 'solve placement --chunk=--part-bytes' \
  'solve overlap --explain=--layers' 'solve overlap --cores=--processors' 'probe --budget=--time' 'probe --limit=--step-timeout' \
  'check --budget=--time' 'run --budget=--time' 'run --limit=--step-timeout' 'run --peer-limit=--peer-timeout' \
  'simulate --budget=--time'; do
  read -r -a words <<< "${now%%=*}"
  refused option "${words[@]}" 1
done
for flag in '' -v; do
  refused "'report'" $flag report plan.json
done
refused "'bandwidth-slack'" \
  plan -p byteps-cluster -m resnet50 --strategy coarse --set tolerance=5%
