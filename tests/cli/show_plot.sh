# SPDX-License-Identifier: Apache-2.0
# reckon show --plot: pictures through gnuplot, which must never execute what stands in a document or in a file name.
source "$(dirname "$0")/../support/shell.sh"
example_documents

reckon show report.json --plot report.svg
if [[ $status == 3 ]]; then
  stderr_has 'gnuplot-nox' # says what to install
  skip "no gnuplot, or a build without it: $(cat .last/stderr)"
fi
expect_status 0
stdout_empty
stderr_empty
[[ $(tail -c 8 report.svg | tr -d '\n') == *'</svg>' ]] || fail "no SVG"

ok show profile.json --plot curves.png
[[ $(head -c 4 curves.png | tail -c 3) == PNG ]] || fail "no PNG"
ok show profile.json --plot matrix.svg --case core_to_core_latency_cas
grep -qF 'm0/core*' matrix.svg || fail "the case decides the form"
ok show profile.json --plot matrix.svg --what matrix

# Without a curve, what there is.
ok import "$source_dir/tests/golden/import/transferbench-p2p.txt" -o amd.json
ok show amd.json --plot amd.svg
grep -qF 'm0/gpu' amd.svg || fail "no matrix"

# Of a cluster the pairs of its machines, although sums have a curve; of one machine the curve.
make_profiles << 'END'
sums = [cell("reduce_sum", 10e9, at="w0", bytes=4**k, threads=1, sources=2, dtype="fp32") for k in (4, 6, 8)]
write("cluster.json", "cluster", ["w0", "w1"], sums + [cell("pair_bandwidth", 1e9, at=a, to=b) for a, b in pairs(["w0", "w1"])])
write("machine.json", "machine", ["w0"], sums)
END
ok show cluster.json --plot cluster.svg
grep -qF pair_bandwidth cluster.svg || fail "not the pairs"
ok show machine.json --plot machine.svg
grep -qF reduce_sum machine.svg || fail "not the curve"

refused '.svg or .png' show report.json --plot report.pdf
exits 2 show plan.json --plot plan.svg
exits 2 show report.json --plot x.svg --what curves
refused 'add --plot' show report.json --what report
exits 4 show report.json --plot none/x.svg
stderr_has 'none/x.svg'
PATH=$work/.last exits 3 show report.json --plot x.svg
stderr_has 'gnuplot-nox'
absent x.svg plan.svg

# Hostile texts wherever a document may hold free text, in the name of the picture, and in the user's own settings.
mkdir home hostile
echo 'system("touch '"$work"'/hostile/pwned")' > home/.gnuplot
cd hostile
i=0
while IFS= read -r text; do
  i=$((i + 1))
  json=${text//\\/\\\\}
  json=${json//\"/\\\"}
  by=$(printf '%s' "$json" | sed 's/[\\&~]/\\&/g')
  sed -E "s~^( *\"(bound_by|cause|first_error|host|how|relief)\": )\".*\"~\1\"$by\"~; s~^(  \"transport\": )\".*\"~\1\"$by\"~" \
    ../report.json > ../hostile_report.json
  sed -E "s~^( *\"(name|reason|source)\": )\".*\"~\1\"$by\"~" ../profile.json > ../hostile_profile.json
  name=${text//\//_}.svg
  HOME=$work/home GNUPLOT_IOSTREAM_CMD='touch pwned' reckon show ../hostile_report.json --plot "$name"
  expect_status 0
  grep -qF pwned -- "$name" || fail "the text is not shown: $text"
  rm -- "$name"
  for what in curves matrix; do
    ok show ../hostile_profile.json --what $what --plot ../x.svg
  done
  [[ -z $(ls) && ! -e ../pwned ]] || fail "executed: $text"
done << 'END'
`touch pwned`
'; system('touch pwned') #
''; system("touch pwned") #
"; system('touch pwned') #
\'; system('touch pwned') #
$(touch pwned)
|touch pwned
< touch pwned
@pwned
%s%n pwned {/Symbol a}_b^c
END
[[ $i == 10 ]] || fail "not all texts were tried"
