# SPDX-License-Identifier: Apache-2.0
# `netlab up` that fails half-way, or is ended, leaves nothing behind.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# ip and tc of which call number FAILS fails, or ends netlab.
mkdir bin
cat > bin/ip << 'END'
#!/bin/sh
echo >> "$CALLS"
if [ "$(wc -l < "$CALLS")" = "$FAILS" ]; then
  [ -z "$ENDS" ] || kill -TERM "$PPID"
  exit 1
fi
PATH=${PATH#*:} exec "${0##*/}" "$@"
END
chmod +x bin/ip
cp bin/ip bin/tc
export CALLS=$work/calls FAILS ENDS

up() { PATH=$work/bin:$PATH run_as_last "$source_dir/scripts/netlab" up --workers 1 --servers 1; }
left() { ip netns list | grep -E "^$NETLAB-" || [[ -e /run/reckon-$NETLAB ]]; }

failed=0
for trial in 1 4 10 10-ends 16 22; do
  FAILS=${trial%-*} ENDS=${trial#"$FAILS"}
  : > calls
  up
  [[ $status != 0 ]] || { netlab down; continue; } # one that may fail
  failed=$((failed + 1))
  ! left || fail "left when call $trial of ip and tc failed"
  [[ $ENDS || $status == 4 ]] || fail "exit code $status"
done
[[ $failed -ge 5 ]] || fail "only $failed of these calls made it fail"
FAILS=0 ENDS='' up
expect_status 0
left > /dev/null || fail "nothing is there after an orderly start"
