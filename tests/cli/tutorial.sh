# SPDX-License-Identifier: Apache-2.0
# Every command of docs/tutorial.md that needs no cluster runs, and prints what the page says.
source "$(dirname "$0")/../support/shell.sh"

# What is measured on the way is made here; that the page's `probe` is accepted is seen, and probe.sh has the rest.
# Whether this machine is disturbed is a warning, and no matter here.
make_profiles << 'END'
host = {"at": "m0", "to": "m0", "direction": "two_way", "in_flight": 4}
cells = [cell("fabric_aggregate", 1e10, bytes=size, pairs=pairs, state=state, **host)
         for size in (262144, 1048576, 4194304) for pairs in (1, 2, 4) for state in ("cold", "cached_source")]
cells += [cell("fabric_aggregate", 7e9, bytes=size, pairs=1, state="cold", threads=1, **host) for size in (262144, 4194304)]
cells += [cell("reduce_sum", threads * 7e9, at="m0", bytes=size, dtype="fp32", sources=sources, state="cold", threads=threads)
          for size in (262144, 4194304) for sources in (2, 8) for threads in (1, 2)]
write("made.json", "made", ["m0"], cells)
END
cat > reckon << END
#!/bin/sh
case \$1 in
  probe) "$RECKON" "\$@" --list > /dev/null && cp made.json profile.json && "$RECKON" show profile.json ;;
  run) exec "$RECKON" "\$@" --iterations 2 --warm-up 0 2> /dev/null ;;
  *) exec "$RECKON" "\$@" ;;
esac
END
chmod +x reckon
python3 "$source_dir/tests/support/check_examples.py" "$work/reckon" "$source_dir/docs/tutorial.md" ||
  fail "docs/tutorial.md: see above; UPDATE_GOLDEN=1 rewrites"
