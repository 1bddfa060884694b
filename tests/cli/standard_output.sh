# SPDX-License-Identifier: Apache-2.0
# Every command's standard output: with --json one JSON document and nothing else, and a reader that closes the pipe ends the
# command quietly.
source "$(dirname "$0")/../support/shell.sh"

example_documents
ok plan -p byteps-cluster -m resnet50 --workers 2 --servers 1 -o two.json

commands=(
  "probe --list" "plan --list" "run --list" "run two.json --check" "show two.json" "show resnet50" "show byteps-cluster"
  "plan -p byteps-cluster -m resnet50 --workers 2" "plan -p byteps-cluster -m resnet50 --workers 2 --sweep servers=0,1"
  "check profile.json" "diff two.json two.json" "solve split --bytes 64MiB --bandwidth 10Gb/s --workers 4 --servers 2"
)
for command in "${commands[@]}"; do
  reckon $command --json
  python3 -c 'import json, sys; json.load(sys.stdin)' < "$last/stdout" || fail "not one JSON document"
  # Nobody reads any more when it is written.
  { "$RECKON" $command 2> err || echo "status $?" >> err; } | (exec < /dev/null; sleep 0.3)
  ! grep -iE "pipe|bug|status" err || fail "$command into a closed pipe: $(cat err)"
done

refused "--csv" show two.json --json --csv
refused "--plot" show two.json --json --plot a.svg
ok show resnet50 --json
"$RECKON" show <(cat "$last/stdout") > /dev/null || fail "the document that show --json prints is none"
