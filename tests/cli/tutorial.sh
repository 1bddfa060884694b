# SPDX-License-Identifier: Apache-2.0
# Every command of docs/tutorial.md that needs no cluster runs, and prints what the page says.
source "$(dirname "$0")/../support/shell.sh"

# Measures only what the page's plans need, but all of it: a budget would skip cells by chance on a busy machine.
# Whether this machine is disturbed is a warning, and no matter here.
cat > reckon << END
#!/bin/sh
case \$1 in
  probe) exec "$RECKON" "\$@" --transport host --only fabric_aggregate,reduce_sum 2> /dev/null ;;
  run) exec "$RECKON" "\$@" --iterations 2 --warm-up 0 2> /dev/null ;;
  *) exec "$RECKON" "\$@" ;;
esac
END
chmod +x reckon
python3 "$source_dir/tests/support/check_examples.py" "$work/reckon" "$source_dir/docs/tutorial.md" ||
  fail "docs/tutorial.md: see above; UPDATE_GOLDEN=1 rewrites"
