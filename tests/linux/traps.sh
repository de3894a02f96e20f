# Traps: EXIT, signals, CHLD, ERR, DEBUG, ignored and inherited ones.
(trap 'echo bye $?' EXIT; exit 3)
echo $?
(trap 'echo first' EXIT; trap - EXIT; echo none)
bash -c 'trap "echo term; exit 5" TERM; kill -TERM $$; echo never'
echo $?
bash -c 'trap "echo usr1" USR1; kill -USR1 $$; kill -USR1 $$; echo on'
bash -c 'trap "" TERM; kill -TERM $$; echo ignored; bash -c "kill -TERM \$\$; echo also"'
bash -c 'trap "echo x" TERM; bash -c "kill -TERM \$\$; echo never"; echo $?'
bash -c 'trap "echo int" INT; kill -INT $$; echo after'
for s in HUP INT QUIT KILL TERM USR2 ALRM SEGV; do
    (ulimit -c 0; bash -c "kill -$s \$\$; echo never"; echo "$s $?") 2>/dev/null
done
bash -c 'trap "echo child" CHLD; (exit 4) & wait $!; echo "waited $?"; (exit 0) & wait; echo end' | sort | uniq -c | sed 's/^ *//'
bash -c 'trap "echo woke" USR1; (sleep 1; kill -USR1 $$) & wait; echo "interrupted $?"; wait; echo "all $?"'
bash -c 'trap "echo got it" USR1; kill -USR1 $$ & sleep 0.3; wait; echo slept'
trap 'echo debug' DEBUG
:
trap - DEBUG
trap 'echo exit trap' EXIT
trap 'echo usr' USR1
trap
trap -l | head -n 3
trap nothing NOSUCH
echo $?
dash -c 'trap "echo dash exits" 0; trap "echo dash hup" HUP; kill -HUP $$; echo on'
perl -e '$SIG{ALRM} = sub { print "alarm\n" }; alarm 1; select undef, undef, undef, 3; print "on\n"'
perl -e 'local $SIG{CHLD} = "IGNORE"; system "true"; print "system $?\n"; my $p = fork; exit 3 unless $p; print waitpid($p, 0), " $?\n"'
perl -e 'use POSIX; my $s = POSIX::SigSet->new(SIGUSR1); sigprocmask(SIG_BLOCK, $s); $SIG{USR1} = sub { print "delivered\n" }; kill USR1 => $$; print "blocked\n"; sigprocmask(SIG_UNBLOCK, $s); print "end\n"'
timeout 0.2 sleep 5
echo $?
timeout -s INT 0.2 sleep 5
echo $?
timeout 5 sh -c 'exit 3'
echo $?
(timeout -k 0.2 0.2 sh -c 'trap "" TERM; while :; do sleep 0.05; done'; echo $?) 2>/dev/null
kill -0 $$ && echo alive
kill -l 9 15 130
