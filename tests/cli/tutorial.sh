# SPDX-License-Identifier: Apache-2.0
# Every command of docs/tutorial.md that needs no cluster runs, and prints what the page says.
source "$(dirname "$0")/../support/shell.sh"

# What measures is short. Whether this machine is disturbed is a warning, and no matter here.
cat > reckon << END
#!/bin/sh
case \$1 in
  probe) exec "$RECKON" "\$@" --budget 3s 2> /dev/null ;;
  run) exec "$RECKON" "\$@" --iterations 2 --warm-up 0 2> /dev/null ;;
  *) exec "$RECKON" "\$@" ;;
esac
END
chmod +x reckon
python3 "$source_dir/tests/support/check_examples.py" "$work/reckon" "$source_dir/docs/tutorial.md" ||
  fail "docs/tutorial.md: see above; UPDATE_GOLDEN=1 rewrites"
