# SPDX-License-Identifier: Apache-2.0
# The checks of shell.sh themselves: each must fail when it should, or the other scripts prove nothing.
source "$(dirname "$0")/../support/shell.sh"

RECKON=$work/fake
cat > fake << 'END'
#!/bin/sh
echo "out $1"
echo "err $2" >&2
if [ -t 1 ]; then echo "columns $(stty size < /dev/tty | cut -d' ' -f2)"; fi
exit "${3:-0}"
END
chmod +x fake

passes() { ("$@") 2> /dev/null || fail "must pass: $*"; }
fails() { ! ("$@") 2> /dev/null || fail "must fail: $*"; }

reckon 'a b*' c 3
passes expect_status 3
fails expect_status 0
passes stdout_has 'a b*'
fails stdout_has 'a bb'
fails stdout_has err
passes stderr_has 'err c'
fails stderr_has out
passes stdout_lacks err
fails stdout_lacks out
passes stderr_lacks out
fails stderr_lacks err
passes stdout_matches '^out a b.$'
fails stdout_matches '^out$'
passes stderr_matches '^err .$'
fails stderr_matches '^err$'
passes stdout_is <<< 'out a b*'
fails stdout_is <<< 'out a b'
fails stdout_empty
fails stderr_empty

reckon_tty 97 x y 5
passes expect_status 5
passes stdout_has 'columns 97'
passes stdout_has 'err y' # one terminal, both streams
passes stdout_matches '^out x$'

printf '#!/bin/sh\n' > fake
reckon
passes stdout_empty
passes stderr_empty

code=0
(skip "no reason") > /dev/null || code=$?
[[ $code == 77 ]] || fail "skip exits with $code"
