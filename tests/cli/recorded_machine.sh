# SPDX-License-Identifier: Apache-2.0
# A machine with 16 processors that was measured and ran these plans: predictions of today against what happened, each row printed.
# A row may be off by its `within`; one of more than 10 % has its cause.
source "$(dirname "$0")/../support/shell.sh"
recorded=$source_dir/tests/golden/one_machine

RECORDED=$recorded python3 - << 'END' || fail "a recorded run is predicted worse than before, see above"
import csv, json, os, subprocess, sys
folder = os.environ["RECORDED"]
errors, worse = [], []
for row in csv.DictReader(open(f"{folder}/runs.csv", encoding="utf-8")):
    command = [os.environ["RECKON"], "plan", "--profile", f"{folder}/16-processors.json", "--workload", row["workload"], "--workers", row["workers"],
               "--servers", row["servers"], "--strategy", row["strategy"], "--zero-compute", "--json"]
    if row["way"] == "in-place":
        command += ["--transport", "host", "--sums", "in-place"]
    else:
        command += ["--transport", "host" if row["way"] == "sent" else row["way"], "--part-bytes", row["part_bytes"], "--window", row["window"]]
        command += ["--sums", "sent"] if row["strategy"] != "ring" else []
    plan = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    measured, predicted = float(row["measured_seconds"]), plan["prediction"]["mid_seconds"]
    error = 100 * (measured / predicted - 1)
    errors.append(abs(error))
    print(f"{row['workers']}+{row['servers']} {row['way']:11} {row['workload']:10} {row['strategy']:12} predicted {1e3 * predicted:7.2f} ms,"
          f" measured {1e3 * measured:7.2f} ms, {error:+6.1f} %  {row['cause']}")
    if abs(error) > float(row["within"]) or (abs(error) > 10 and not row["cause"]):
        worse.append(row)
median = sorted(errors)[len(errors) // 2]
print(f"{len(errors)} runs: median {median:.1f} %, worst {max(errors):.1f} %")
sys.exit(bool(worse) or len(errors) != 21 or median > 8)
END
