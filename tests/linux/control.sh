# Loops, case, functions, return, break, select, set -e and set -u in their places.
for i in 1 2 3 4; do
    [ $i = 2 ] && continue
    [ $i = 4 ] && break
    echo $i
done
for i in a b; do for j in 1 2 3; do [ $j = 2 ] && continue 2; echo $i$j; done; done
n=3
until [ $n = 0 ]; do echo -n "$n "; n=$((n - 1)); done
echo
case foo.c in *.h) echo header ;; *.[co]) echo source ;& x) echo fell ;; *) echo no ;; esac
case abc in a*) echo one ;;& *c) echo two ;; esac
f() { local x=in; echo "$x $1 $#"; return 7; }
x=out
f a b
echo "$? $x"
recursive() { [ "$1" = 0 ] && return; echo -n "$1 "; recursive $(($1 - 1)); }
recursive 50
echo
select c in red blue; do echo "chose $c"; break; done <<<2 2>&1
(set -e; false; echo never)
echo $?
(set -e; false || true; if false; then :; fi; ! true; echo reached; false; echo never)
echo $?
(set -e; f() { false; echo "in f"; }; f && echo yes; f; echo never)
echo $?
(set -e -o pipefail; false | true; echo never)
echo $?
(set -u; echo "$unset"; echo never) 2>&1
echo $?
(set -eE; trap 'echo "error on line $LINENO"' ERR; false; echo never) | sed 's/[0-9]\+/N/'
(set -x; y=1; echo "$y" >/dev/null) 2>&1
nosuchcommand 2>&1
echo $?
touch plain
./plain
echo $?
/
echo $?
[[ abc == a* && ! abc < aaa ]] && echo compared
[[ 2024-05-06 =~ ^([0-9]+)-([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
[ -n "" ] || [ a != b -a 3 -lt 4 ] && echo old
test 3 -eq x
echo $?
eval 'echo evaluated $x'
. /dev/stdin <<<'sourced=yes'
echo "$sourced"
type cd ls f | head -n 2 | cut -d' ' -f1-4
command -v cat
getopts_test() { while getopts ab:c o "$@"; do echo "$o ${OPTARG-}"; done; shift $((OPTIND - 1)); echo "rest $*"; }
OPTIND=1
getopts_test -a -b val -cx rest 2>&1
true && exit 42
