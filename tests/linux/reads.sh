# read and its options: timeouts, counts, delimiters, prompts without a terminal.
printf 'a b c\n' | { read -r x y; echo "$x|$y"; }
printf 'back\\slash\\\njoined\n' | { read x; echo "$x"; }
printf 'back\\slash\n' | { read -r x; echo "$x"; }
printf 'no newline' | { read -r x; echo "$? $x"; }
read -r x </dev/null
echo $?
printf 'abcdef' | { read -r -n 2 x; read -r -N 3 y; echo "$x $y"; }
printf 'one:two' | { read -r -d : x; echo "$x"; }
printf 'x\0y\0' | while read -r -d '' x; do echo "<$x>"; done
sleep 2 | { read -r -t 0.2 x; s=$?; [ $s -gt 128 ] && echo timeout; }
(sleep 0.2; echo late) | { read -r -t 50 x; echo "$? $x"; }
echo ready | { sleep 1; read -t 0 && echo available; read -r x; echo "$x"; }
printf '1 2 3\n' | { read -r -a v; echo "${#v[@]}"; }
printf 'p\n' | { read -r -p 'prompt: ' x; echo "$x"; }
printf 's\n' | { read -r -s x; echo "$x"; }
IFS=: read -r name _ uid _ </etc/passwd
echo "$name $uid"
seq 3 >f
exec 3<f
read -r -u 3 a
head -n 1 <&3
read -r -u 3 b
echo "$a [$b]"
exec 3<&-
stty 2>&1 </dev/null
echo $?
tty </dev/null
echo $?
stty size 2>&1 <f
[ -t 0 ] || echo no terminal
test -t 1
echo $?
perl -e 'print -t STDIN ? "tty" : "no tty", "\n"; print eof(STDIN) ? "eof\n" : "data\n"'
