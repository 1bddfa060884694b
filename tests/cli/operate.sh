# SPDX-License-Identifier: Apache-2.0
# The recipes of docs/operate.md: the line for cron runs as it stands there, and examples print what the page says.
source "$(dirname "$0")/../support/shell.sh"
page=$source_dir/docs/operate.md

# What measures does so for 3 s.
cat > reckon << END
#!/bin/sh
if [ "\$1" = check ]; then case \$2 in -*) shift; exec "$RECKON" check --time 3s "\$@";; esac; fi
exec "$RECKON" "\$@"
END
chmod +x reckon
"$work/reckon" check -o machine.json > first || [[ $? == 1 ]] || fail "the first recipe"

line=$(sed -n '/^```cron$/,/^```$/{/^```/!p}' "$page")
[[ $line =~ ^([0-9*]+\ ){5}\ *(reckon\ [^%]*)$ ]] || fail "the page has no line for cron, or one with %: $line"
run_as_last env HOME="$work" PATH="$work:$PATH" sh -c "${BASH_REMATCH[2]}"
stderr_empty
case $status in # whether this machine is as busy as a moment ago is not ours to say
  0) stdout_empty ;;
  1) stdout_has 'machine.json' ;;
  *) fail "cron's line ends with $status" ;;
esac
[[ -s latest.json ]] || fail "nothing was kept"

python3 "$source_dir/tests/support/check_examples.py" "$work/reckon" "$page" || fail "$page: see above; UPDATE_GOLDEN=1 rewrites"
