# Pipelines: statuses, pipefail, writers without readers, long data, named pipes.
true | false | true
echo "$? ${PIPESTATUS[*]}"
false | exit 3 | (exit 5)
echo "$? ${PIPESTATUS[*]}"
set -o pipefail
false | true
echo $?
yes | head -n 3
echo "${PIPESTATUS[*]}"
set +o pipefail
yes | head -c 1000000 | wc -c
seq 100000 | tac | tail -n 1
seq 100000 | tee one two | md5sum
cmp one two && wc -l one two
mkfifo fifo
stat -c '%F %a' fifo
seq 5 >fifo &
paste -sd+ fifo
wait
(echo a >fifo; echo b >fifo) &
cat fifo >>both
while [ "$(cat both)" != "a
b" ]; do cat fifo >>both; done
wait
cat both
exec 5<>fifo
echo kept >&5
read -r line <&5
echo "$line"
exec 5>&-
{ echo out; echo err >&2; } 2>&1 >/dev/null | sed 's/^/piped: /'
{ echo out; echo err >&2; } |& sort
{ echo one; echo two >&3; } 3>&1 >/dev/null | cat
echo x | { read -r a; echo "[$a]"; }
echo lost | read -r b
echo "[${b-}]"
shopt -s lastpipe
echo kept | read -r b
echo "[$b]"
(trap '' PIPE; yes 2>/dev/null; echo "yes ended with $?" >&2) 2>&1 >/dev/full
perl -e '$SIG{PIPE} = sub { print STDERR "got SIGPIPE\n"; exit 9 }; $| = 1; print "x\n" while 1' 2>err | head -n 1
echo "${PIPESTATUS[*]}"
cat err
dd if=/dev/zero bs=1M count=8 2>/dev/null | dd bs=64k iflag=fullblock 2>/dev/null | cksum
echo full >/dev/full
echo $?
