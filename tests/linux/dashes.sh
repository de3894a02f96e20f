# The same with dash: functions, expansions, traps, redirections, what it has not.
cat >s <<'END'
f() { local a=1; echo "f $a $1"; return 2; }
f x; echo $?
echo ${#0} ${1:-none} ${x:=set} ${x%t} ${x#s}
for i in a b c; do case $i in b) continue;; esac; echo $i; done
i=0; while [ $i -lt 3 ]; do i=$((i+1)); printf '%d ' $i; done; echo
echo $((1+2*3)) $((7%3)) $((1<<4)) $((5>3)) $((0x10))
trap 'echo exit trap' EXIT
(trap 'echo sub' EXIT)
set -- one two "three four"; echo $# "$3"; shift; echo $1
for a; do echo "[$a]"; done
IFS=:; set -- a:b:c; echo $#; x=a:b:c; set -- $x; echo $#; unset IFS
cat <<X | tr a-z A-Z
here $((2*2))
X
echo a; { echo b; echo c; } | sort -r
! false && echo negated
false || echo or
a=`echo back\`echo nested\`tick`; echo $a
eval "v_$((1+1))=ok"; echo $v_2
readonly r=1; (r=2) 2>&1; echo $?
command -v f; command -v echo; type cat | cut -c1-6
umask 077; umask; umask 022
(exit 5); echo $?; (kill -9 $(sh -c 'echo $PPID')) ; echo $?
getopts ab: o -b val; echo $o $OPTARG
echo "a\tb\\n"; printf '%s\n' 'a\tb'
sleep 0.1 & wait $!; echo $?
echo x > f; read y < f; echo $y; rm f
[ -z "$nosuch" ] && echo empty
times | wc -l
ulimit -n
alias al='echo aliased'
al
exec 3>o; echo to3 >&3; exec 3>&-; cat o
set -u; (echo $undefined) 2>&1; echo $?; set +u
set -e; false || :; echo still; false; echo never
END
dash s arg 2>&1
echo $?
dash -c 'a=(1 2)' 2>&1
echo $?
dash -c 'echo $0 $1' zero one
echo 'echo from stdin; exit 4' | dash
echo $?
dash -n s && echo parsed
dash -c '[[ 1 ]]' 2>&1
echo $?
dash -c 'trap "echo t" TERM; kill $$; echo on'
dash -ec 'x=$(false); echo never'
echo $?
dash -c 'while :; do :; done' & p=$!
kill $p
wait $p
echo $?
dash missing
echo $?
printf 'for i in 1 2; do\n' | dash
echo $?
dash -c 'i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i + 1)); done; echo $i'
