# SPDX-License-Identifier: Apache-2.0
# reckon probe --topology: the tree of another machine out of a file; nothing is measured.
source "$(dirname "$0")/../support/shell.sh"
machines=$source_dir/tests/golden/topology/machines

ok probe --topology "$machines/amd-mi50-switches.xml" -o tree.json
stderr_empty
stdout_says '(bridge0), S_g' tree.json
json_check tree.json << 'END'
assert tree["cells"] == [] and tree["fits"] == [] and tree["name"] == "amd-mi50-switches"
assert tree["source"].startswith("not measured"), tree["source"]
assert sum(o["kind"] == "gpu" for o in tree["topology"]["objects"]) == 8 == len(tree["topology"]["links"])
END

# The same file gives the same bytes, and a profile that show reads.
reckon probe --topology "$machines/amd-mi50-switches.xml" --json
cmp -s tree.json .last/stdout || fail "--json gives another document"
ok show tree.json
stdout_says asymmetric
for file in "$machines"/*.xml; do
  ok probe --topology "$file" -o other.json
  ok show other.json
done

# What was odd in a file is in the profile, the same wherever the file lies.
reckon probe --topology "$machines/azure-ncv4.xml" -o odd.json
cp "$machines/azure-ncv4.xml" .
reckon probe --topology azure-ncv4.xml -o here.json
cmp -s odd.json here.json || fail "the profile depends on the file's folder"

# Mistakes.
echo '<plan/>' > bad.xml
refused 'line 1' probe --topology bad.xml -o bad.json
absent bad.json
refused missing.xml probe --topology missing.xml -o bad.json
refused "measures nothing" probe --topology "$machines/aws-p5.xml" --cluster
