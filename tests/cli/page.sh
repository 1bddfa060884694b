# SPDX-License-Identifier: Apache-2.0
# reckon page: pages that are whole, need nothing from elsewhere, run nothing, and say what run, diff and check say.
source "$(dirname "$0")/../support/shell.sh"
example_documents

page_ok() { python3 "$source_dir/tests/support/page_check.py" "$@" || fail "see above"; }
# The lines of a page for a reader.
text_of() { python3 "$source_dir/tests/support/page_check.py" --text "$1" > "$1.txt" || fail "see above"; }
line_of() { grep -qF -e "$2" "$1.txt" || fail "$1 does not say: $2"; }

for kind in profile plan report workload roles; do
  ok page $kind.json -o $kind.html
  stdout_empty
  stderr_empty
  page_ok $kind.html
  ok page - < $kind.json
  sed "s/^\(<p class=\"dim\">$kind \)-/\1$kind.json/" .last/stdout | cmp -s - $kind.html || fail "standard input gives another page"
done
ok page profile.json -o again.html
cmp -s profile.html again.html || fail "the same documents give another page"

# What ships, and what others measured.
for name in byteps-pcie h100-cluster coarse-v100 ace-torus resnet50; do
  ok page $name -o ship.html
  page_ok ship.html
done
ok import "$source_dir/tests/golden/import/transferbench-p2p.txt" -o amd.json
ok page amd.json -o amd.html
page_ok amd.html
text_of amd.html
# A heat map has each value with its part of the best.
line_of amd.html '1 66.52100 % N/A 29.0744 %'

# A loop: a plan inside a machine, executed here.
make_profiles << 'END'
write("pair.json", "pair", [{"id": "m0", "name": "here", "count": 1, "cores": 2}],
      [cell("fabric_aggregate", 2e9, at="m0", to="m0", bytes=size, pairs=n, in_flight=4, direction="two_way", state="cold")
       for size in (4096, 65536, 1048576) for n in (1, 2)] +
      [cell("reduce_sum", 8e9, at="m0", bytes=1048576, threads=t, sources=2, dtype="fp32", state="cold") for t in (1, 2)])
END
printf 'name,elements,dtype\nhead,200000,fp32\ntail,50000,fp32\n' > model.csv
ok plan --profile pair.json --workload model.csv -o loop.json
reckon run loop.json --transport host -n 3 -o measured.json --trace trace.json
[[ $status -le 1 ]] || fail "the run failed"
verdict=$(sed -n 's/^verdict *//p' .last/stdout)
ok page measured.json pair.json loop.json --measured trace.json -o loop.html
stderr_empty
page_ok loop.html
text_of loop.html
line_of loop.html "$verdict"
[[ $(grep -nF -m 1 -e "$verdict" loop.html.txt | cut -d: -f1) -lt $(grep -n -m 1 '^Predicted and measured$' loop.html.txt | cut -d: -f1) ]] ||
  fail "the verdict does not come first"
for line in Links Timeline predicted measured 'rank 1 lane 0' Equations Candidates Environment; do line_of loop.html "$line"; done
# What show says of each stands there, too.
reckon show loop.json --explain
line_of loop.html "$(awk '/part_bytes/ { $1 = $1; print; exit }' .last/stdout)"
# The plan finds its profile beside it, and without one has no timeline.
ok page loop.json -o found.html
grep -q '<h2>Timeline' found.html || fail "the profile beside the plan was not found"
mkdir alone
cp loop.json alone
(cd alone && reckon page loop.json -o page.html && expect_status 0)
! grep -q '<h2>Timeline' alone/page.html || fail "a plan without its profile was played"
page_ok found.html alone/page.html
# With another one, says so and plays with the right one.
ok page loop.json profile.json -o other.html
text_of other.html
line_of other.html 'the plan was made with another profile, pair'
line_of other.html Timeline

# Links by what the plan makes of them, in the tree as well, the busiest marked; and links that are slow.
ok plan -p byteps-pcie -m model.csv --places gpu -o inside.json
ok page byteps-pcie inside.json -o inside.html
page_ok inside.html
text_of inside.html
line_of inside.html 'the busiest'
grep -qE 'sw0 .*up [0-9.]+ % busy' inside.html.txt || grep -qE '% busy' inside.html.txt || fail "the tree has no use"

# A cluster with one slow machine: it is marked in the matrix and beside its links.
make_profiles << 'END'
names = [f"w{i}" for i in range(30)]
def rate(a, b): return 4e8 if "w7" in (a, b) else 1e9
def made(file, count):
    some = names[:count]
    write(file, "some", [{"id": "m0", "name": "all", "count": count, "cores": 2, "members": some}],
          [cell("pair_bandwidth", rate(a, b), at=a, to=b, bytes=65536, in_flight=4, direction="two_way", transport="tcp;ofi_rxm")
           for a, b in pairs(some)] +
          [cell("port_bandwidth", rate(m, m), at=m, transport="tcp;ofi_rxm") for m in ["m0", *some]])
made("some.json", 10)
made("many.json", 30)
END
exits 1 check some.json
found=$(head -n 1 .last/stdout)
ok plan -p some.json -m model.csv --workers 10 -o cluster.json
ok page some.json cluster.json -o cluster.html
page_ok cluster.html
text_of cluster.html
line_of cluster.html "$found"
[[ $(grep -o '<td class="odd"[^>]*' cluster.html | grep -c w7) == 18 ]] || fail "not all 18 ways of the slow machine are marked"
[[ $(grep -c '<td class="odd"' cluster.html) -gt 0 && $(grep -o '<td class="odd"' cluster.html | wc -l) == 18 ]] || fail "others are marked"
grep -qE '^w7 .*odd: ' cluster.html.txt || fail "the slow machine's links are not marked"
ok page many.json -o many.html
page_ok many.html
grep -q '<rect .*<title>w7 -&gt; w0 to w6: ' many.html || fail "a large matrix has no squares"

# A plan of very many writes is not played; its links carry what they carry.
ok plan -p byteps-cluster -m bert-large --workers 32 --servers 16 -o large.json
ok page byteps-cluster large.json -o large.html
page_ok large.html
text_of large.html
line_of large.html 'the plan is not played: it has more than 200000 writes'
grep -qE '^rank 0 out, [0-9]+ such (100|99[.0-9]*) % .* the busiest$' large.html.txt || fail "the ports are not busy all the time"

# Two of one kind: what diff says, whatever the verdict; the exit status is that of the page.
ok plan -p some.json -m model.csv --workers 8 -o fewer.json
reckon diff cluster.json fewer.json
expect_status 1
head -n 2 .last/stdout > said
ok page cluster.json fewer.json -o diff.html
page_ok diff.html
text_of diff.html
while read -r line; do line_of diff.html "$line"; done < said
grep -q '<div class="verdict bad">' diff.html || fail "a difference is not bad"
ok page profile.json profile.json -o same.html
text_of same.html
line_of same.html 'profiles profile.json and profile.json: same in'
grep -q '<div class="verdict good">' same.html || fail "the same is not good"
for kind in report workload roles; do
  ok page $kind.json $kind.json -o same.html
  page_ok same.html
done

# Hostile texts wherever a document may hold free text, and as names of files.
while IFS= read -r text; do
  python3 - "$text" << 'END'
import json, sys
def spoil(value, key=""):
    if isinstance(value, dict):
        return {k: spoil(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [spoil(v, key) for v in value]
    free = ("bound_by", "cause", "first_error", "host", "how", "relief", "reason", "source", "description", "verdict", "margin_text")
    return text if isinstance(value, str) and key in free else value
text = sys.argv[1].encode().decode("unicode_escape")
for kind in ("profile", "plan", "report", "workload", "roles"):
    with open(f"{kind}.json", encoding="utf-8") as file:
        document = spoil(json.load(file))
    if "name" in document and text.isprintable():  # names have no control characters
        document["name"] = text
    with open(f"hostile-{kind}.json", "w", encoding="utf-8") as file:
        json.dump(document, file)
END
  for kind in profile plan report workload roles; do
    ok page hostile-$kind.json -o hostile-$kind.html
    ok page $kind.json hostile-$kind.json -o hostile-$kind-diff.html
  done
  ok page hostile-report.json hostile-plan.json hostile-profile.json -o hostile.html
  page_ok hostile*.html
done << 'END'
<script>alert(1)</script>"><img src=x onerror=alert(1)>' onload='alert(1) </style></title><script> &lt;p&gt; &amp; <!-- ]]>
\x01\x02\x05\x0e\x10\x11\x1b[31m
END
cp profile.json '<img src=x>&".json'
ok page '<img src=x>&".json' -o name.html
page_ok name.html
grep -qF '&lt;img src=x&gt;&amp;&quot;.json' name.html || fail "the file's name is not shown"

# Bad input, and files that are no page.
refused missing.json page missing.json -o x.html
refused 'each kind' page profile.json profile.json plan.json -o x.html
refused 'standard input' page - - -o x.html
refused 'give the plan' page profile.json --measured trace.json -o x.html
refused comparison page plan.json plan.json --measured trace.json -o x.html
refused process page loop.json --measured <(echo '{"traceEvents": []}') -o x.html
echo '{"schema": "profile"' > broken.json
refused broken.json page broken.json -o x.html
exits 2 report
absent x.html
cp plan.json kept.json
refused 'is no page' page profile.json -o kept.json
refused input page plan.json -o plan.json
cmp -s plan.json kept.json || fail "a document was replaced"
exits 4 page profile.json -o none/x.html
stderr_has none/x.html
