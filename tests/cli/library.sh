# SPDX-License-Identifier: Apache-2.0
# The installed library: what it shows, and a program that is built against it and trains with a plan.
# timeout: 600
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "a program that is not sanitized cannot load the library"

cmake --install "$build" --prefix "$PWD/first" > installed.txt
mv first prefix # an installation works wherever it lies
library=$(find prefix -name libreckon.so)
[[ $library ]] || fail "no libreckon.so is installed"

# All that the header declares, and nothing else.
sed -n 's/^RECKON_API .*\b\(reckon_[a-z_]*\)(.*/\1@@RECKON_0/p' prefix/include/reckon/reckon.h | sort > declared
nm --dynamic --defined-only --extern-only "$library" | awk '{ print $3 }' | grep -v '^RECKON_0' | sort > shown
diff -u declared shown || fail "what the library shows is not what the header declares"
(($(wc -l < shown) <= 20)) || fail "the library shows more than 20 functions"

# A program that was built with an earlier libreckon.so.0 finds the functions, structs and values that it knows. Of the library's own
# source, whose calls the linker need not find here; functions may be added. After a change that is meant: UPDATE_GOLDEN=1, and a new
# SOVERSION unless nothing has been released yet.
if [[ $(uname -m) == x86_64 ]]; then
  abi=$source_dir/tests/golden/abi/libreckon.so.0.xml
  [[ $(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p') == libreckon.so.0 ]] || fail "another SONAME"
  c++ -g -std=c++20 -fPIC -shared -ffile-prefix-map="$source_dir"=. -I "$source_dir/lib" -I "$source_dir/include" -I "$build/lib/core/generated" -Wl,-soname,libreckon.so.0 \
    -Wl,--version-script="$source_dir/apps/libreckon/exports.map" -Wl,--unresolved-symbols=ignore-all "$source_dir/apps/libreckon/reckon.cpp" -o abi.so
  abidw --no-comp-dir-path --no-corpus-path --no-show-locs --no-elf-needed --exported-interfaces-only --drop-private-types \
    --headers-dir "$source_dir/include" --type-id-style hash --out-file abi.xml abi.so
  [[ -z ${UPDATE_GOLDEN:-} ]] || cp abi.xml "$abi"
  abidiff --no-added-syms "$abi" abi.xml > changes.txt || fail "the ABI of libreckon.so.0 changed: $(cat changes.txt)"
fi

printf '#include <reckon/reckon.h>\nint main(void) { return reckon_version()[0] == 0; }\n' > plain.c
cc -std=c99 -Wall -Wextra -Wpedantic -Werror plain.c -o plain \
  $(PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig pkg-config --cflags --libs reckon)
LD_LIBRARY_PATH=$(dirname "$library") ./plain || fail "a C program does not start"

cmake -S "$source_dir/examples/perceptron" -B example -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$PWD/prefix" > configured.txt
cmake --build example > built.txt

# Two workers and a server learn what one process learns from both batches: the same losses, but for rounding.
# Its workload is one that only the installation has: the library finds it beside itself.
python3 - "$source_dir/examples/perceptron/perceptron.csv" > prefix/share/reckon/profiles/workloads/perceptron.json << 'END'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1])))
print(json.dumps({"schema": "reckon/workload", "schema_version": 1, "name": "perceptron", "description": "", "provenance": "",
                  "dtype": "fp32", "tensors": [{"name": row["name"], "elements": int(row["elements"])} for row in rows]}))
END
RECKON=$PWD/prefix/bin/reckon
ok plan --profile byteps-cluster --workload perceptron --workers 2 --servers 1 --port-bandwidth 1GB/s --transport host -o plan.json
run_as_last example/perceptron --alone 2
expect_status 0
cp "$last/stdout" alone
[[ $(wc -l < alone) == 20 ]] || fail "20 steps alone"
export RECKON_WORLD_SIZE=3 RECKON_MASTER_ADDR=127.0.0.1 RECKON_MASTER_PORT
RECKON_MASTER_PORT=$(free_port)
export RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=1 # a framework's, which knows of no server
pids=()
for rank in 0 1 2; do
  RECKON_RANK=$rank example/perceptron plan.json > "rank$rank" 2> "report$rank" &
  pids+=($!)
done
for rank in 0 1 2; do
  wait "${pids[rank]}" || fail "rank $rank: $(cat "report$rank")"
done
cmp rank0 rank1 || fail "workers know different losses"
[[ ! -s rank2 ]] || fail "a server trained"
python3 - << 'END' || fail "the losses are not those of one process"
lines = [[line.split() for line in open(name)] for name in ("alone", "rank0")]
assert len(lines[1]) == 20
for alone, together in zip(*lines):
    assert alone[:3] == together[:3], (alone, together)
    assert abs(float(alone[3]) - float(together[3])) <= 2e-5 * float(alone[3]), (alone, together)
assert float(lines[0][-1][3]) < float(lines[0][0][3]) / 2, "it learns nothing"
END
json_check report0 report1 report2 << 'END'
for report in (report0, report1, report2):
    assert report["steps"] == 20 and report["copied_bytes_per_step"] == 0, report
assert len(report0["exchange_seconds"]["all"]) == 19 and report0["plan"]["name"] == "plan.json"
END
