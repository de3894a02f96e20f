#!/bin/sh
# Functions, loops, cases, traps, statuses, options.
fail() { return "${1:-1}"; }
say() { printf '%s: %s\n' "$1" "$2"; }
fail; echo "status $?"; fail 42; echo "status $?"
say name 'two words'; say; echo
factorial() { if [ "$1" -le 1 ]; then echo 1; else echo $(($1 * $(factorial $(($1 - 1))))); fi; }
factorial 6
gcd() { a=$1 b=$2; while [ $b -ne 0 ]; do t=$((a % b)); a=$b; b=$t; done; echo $a; }
gcd 84 36
scope() { local x=inside; x="$x!"; echo $x; }; x=outside; scope; echo $x
classify() {
    case $1 in
        '') echo empty ;;
        -*) echo option ;;
        [0-9]|[0-9][0-9]) echo small ;;
        *[!0-9]*) echo text ;;
        *) echo number ;;
    esac
}
for word in '' -v 7 42 123 abc 12a; do classify "$word"; done
for i in 1 2 3 4 5; do [ $i -eq 2 ] && continue; [ $i -eq 4 ] && break; echo $i; done
for i in a b; do for j in 1 2 3; do [ $j = 2 ] && continue 2; echo $i$j; done; done
i=0; until [ $i -ge 3 ]; do i=$((i + 1)); done; echo $i
true && echo yes; false || echo no; ! false; echo $?; true || echo never && echo always
if fail 2; then echo bad; elif fail 0; then echo good; else echo worse; fi
{ echo group; fail 5; }; echo $?; (exit 9); echo $?; (fail 3) || echo "sub $?"
set -- one 'two three' four; echo $#; for a; do echo "[$a]"; done; shift; echo "$1"; echo "$*"
set --; echo $#
parse() {
    OPTIND=1; verbose=no file=
    while getopts vf: option "$@"; do
        case $option in v) verbose=yes ;; f) file=$OPTARG ;; *) echo usage; return 2 ;; esac
    done
    shift $((OPTIND - 1)); echo "$verbose/$file/$*"
}
parse -v -f out rest more; parse -vfx; parse -q 2>/dev/null; echo $?; parse plain
nothing_like_this 2>/dev/null; echo $?; ./nothing 2>/dev/null; echo $?; mkdir dir; ./dir 2>/dev/null; echo $?
sh -c 'exit 7'; echo $?; sh -c 'echo $0 $1 $#' name arg; echo 'echo from stdin; exit 4' | sh; echo $?
sh -e -c 'echo before; false; echo after'; echo $?
sh -u -c 'echo ${unset-fine}; echo $unset; echo after' 2>/dev/null; echo $?
sh -c 'set -e; if false; then :; fi; false || true; ! true; echo survived; (false); echo no'; echo $?
(trap 'echo leaving' EXIT; echo working; exit 6); echo $?
sh -c 'trap "echo bye" EXIT; false'; echo $?
sh -c 'echo "unclosed' 2>/dev/null; echo $?; sh -c 'if true; then echo x' 2>/dev/null; echo $?
sh -c 'echo ok; done; echo no' 2>/dev/null; echo $?; sh -c 'echo ${bad!}' 2>/dev/null; echo $?
sh -c 'readonly r=1; r=2; echo no' 2>/dev/null; echo $?; sh -c 'shift 4; echo no' 2>/dev/null; echo $?
sleep 0.1 & wait $!; echo $?; sh -c 'exit 11' & wait $!; echo $?; (sleep 0.1; echo late) & echo early; wait
true | false | true; echo $?; echo piped | while read -r line; do echo "got $line"; done
echo 3 | { read -r n; echo $((n * n)); }
count=0; while read -r line; do count=$((count + 1)); done <<END
a
b
c
END
echo "lines $count"
command -v cd; eval "x='evaluated'; echo \$x"; eval false; echo $?
x=temporary sh -c 'echo $x'; echo "$x"; export x; sh -c 'echo $x'; unset x; sh -c 'echo ${x-unset}'
echo 'library() { echo "from library $1"; }; value=7' > lib.sh; . ./lib.sh; library here; echo $value
kill -0 999999 2>/dev/null || echo 'no such process'; kill -0 $$ && echo 'still here'
sleep 9 & kill $!; wait $!; echo $?; sleep 9 & kill -9 $!; wait $!; echo $?; sleep 9 & kill -s HUP $!; wait $!; echo $?
[ 1 -eq 1 ] && [ 2 -gt 1 -a 3 -ne 4 ] && test -n x && echo tests; [ x -eq 1 ] 2>/dev/null; echo $?
exec 3> third; echo to three >&3; exec 3>&-; cat third
yes | head -n 2; seq 100000 | head -n 1
# Functions that call each other deeply.
down() { if [ $1 -gt 0 ]; then down $(($1 - 1)); else echo bottom; fi; }
down 80
each() { for i in x; do case $1 in 0) echo ground;; *) each $(($1 - 1));; esac; done; }
each 50
exit 13
