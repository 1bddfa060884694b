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
# The line is in the file of messages, which this script gives other lines meanwhile.
messages=$work/messages
unset UPDATE_GOLDEN
printf '%s\n' 'out a b*' > messages
passes stdout_says 'b*'
fails stdout_says b c
fails stderr_says err
mkdir texts && printf 'out %s\n' WORK/texts > messages
reckon "$work/texts" c 3
passes stdout_says texts
reckon 'a b*' c 3
(UPDATE_GOLDEN=1 && stdout_says out && stderr_says err)
printf '%s\n' 'out a b*' 'err c' | cmp - "$last/said" || fail "not written: $(cat "$last/said")"
rm "$last/said"
# Each of several texts counts.
passes stdout_has out 'b*'
fails stdout_has out none
fails stdout_lacks none out
fails stdout_matches '^out' '^none'

passes exits 3 a b 3
fails exits 3 a b 4
passes ok a b 0
fails ok a b 1
# The status, an empty standard output, and an error with the text, all three.
refusing() { printf '#!/bin/sh\nprintf "%%s" "%s"\necho "%s" >&2\nexit %s\n' "$1" "$2" "$3" > fake; }
cp fake printing
refusing '' 'reckon: error: no such thing' 2
echo 'reckon: error: no such thing' > messages
passes refused 'no such' a
fails refused 'no other' a
refusing '' 'reckon: error: no such thing' 1
fails refused 'no such' a
refusing text 'reckon: error: no such thing' 2
fails refused 'no such' a
refusing '' 'no such thing' 2
fails refused 'no such' a
mv printing fake

passes absent none nobody
fails absent none fake
echo '{"a": 1}' > one.json
passes json_check one.json b=2 <<< 'assert one["a"] == 1 and b == "2" and near(1.02, one["a"], 0.03)'
fails json_check one.json <<< 'assert one["a"] == 2'
fails json_check none.json <<< ''
sleep 0 &
wait $!
passes wait_until true $!
fails wait_until false $!
port=$(free_port)
[[ $port -ge 1024 && $port -le 65535 ]] || fail "port $port"

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
