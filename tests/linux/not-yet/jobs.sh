# Jobs of a script: background, wait, wait -n, job control without a terminal, coproc, times.
sleep 60 &
p=$!
[ "$p" -gt 1 ] && kill -0 $p && echo running
kill $p
wait $p 2>/dev/null
echo $?
(exit 9) &
wait $!
echo $?
for i in 3 1 2; do (exit $i) & done
sum=0
for i in 1 2 3; do wait -n; sum=$((sum + $?)); done
echo $sum
wait -n
echo $?
wait 999999 2>/dev/null
echo $?
sleep 30 &
kill $!
wait $! 2>/dev/null
echo $?
sleep 30 &
kill -STOP $!
kill -CONT $!
kill -KILL $!
wait $! 2>/dev/null
echo $?
set -m
sleep 30 &
jobs | sed 's/  */ /g'
kill -STOP %1
until jobs | grep -q Stopped; do :; done
jobs | sed 's/  */ /g'
bg %1 >/dev/null
jobs -r | wc -l
kill %1
wait %1 2>/dev/null
echo $?
(sleep 0.1; echo in fg) &
fg %%
set +m
coproc { read -r line; echo "co got $line"; read -r line; }
echo hello >&"${COPROC[1]}"
read -r answer <&"${COPROC[0]}"
echo end >&"${COPROC[1]}"
echo "$answer"
wait
mkfifo gate
{ read -r word; echo "$word"; } <gate &
echo sooner
echo later >gate
wait
for i in $(seq 30); do (exit $((i % 7))) & pids="$pids $!"; done
sum=0
for p in $pids; do wait "$p"; sum=$((sum + $?)); done
echo $sum
disown -a
sleep 0 &
disown
wait
echo $?
nohup sh -c 'echo nohup $0' 2>&1
nice -n 5 nice
nice -n 3 sh -c 'nice -n 4 nice'
setsid -w sh -c 'exit 6'
echo $?
perl -e 'my @p = map { my $n = $_; my $p = fork; exit $n unless $p; $p } 1 .. 5; my %s; while ((my $p = wait) > 0) { $s{$? >> 8}++ } print join(",", sort keys %s), "\n"'
perl -e 'pipe R, W; if (!fork) { close R; print W "to parent\n"; exit } close W; print <R>; wait; print $? >> 8, "\n"'
perl -e 'use POSIX ":sys_wait_h"; my $p = fork; unless ($p) { sleep 1; exit 2 } print waitpid($p, WNOHANG), "\n"; waitpid $p, 0; print WIFEXITED($?), WEXITSTATUS($?), "\n"; print waitpid($p, 0), " $!\n"'
