# Redirections: descriptors opened, doubled, moved and closed; append, noclobber, read and write.
echo one >f
echo two >>f
cat <f
exec 3>g 4>&3
echo three >&3
echo four >&4
exec 3>&-
echo five >&4
(echo six >&3) 2>&1
exec 4>&-
cat g
set -C
(echo again >f) 2>&1
echo $?
echo forced >|f
set +C
cat f
exec 6<>f
read -r -n 3 -u 6 part
echo "$part"
printf 'CED' >&6
exec 6>&-
cat f
cat <missing
echo $?
echo x >/nowhere/y
echo $?
echo x >.
echo $?
ls missing f 2>/dev/null
ls missing f 2>&1 >/dev/null
echo both &>h
cat h
{ echo a; echo b >&2; } >i 2>j
cat j i
exec {fd}<f
[ "$fd" -ge 10 ] && cat <&"$fd"
exec {fd}<&-
exec 7<f 8<&7-
read -r line <&8
echo "$line"
(read -r line <&7) 2>&1
exec 8<&-
seq 5 >k
{ read -r a; read -r b; cat; } <k
echo "$a $b"
(head -n 1 >/dev/null; echo rest) <k
{ sed -n 1q; cat; } <k | head -n 2
: >k
wc -c <k
echo gone >l
exec 9<l
rm l
cat <&9
ls l
echo "0$(readlink /proc/self/fd/9 | tail -c 10)"
exec 9<&-
cat f - <<<stdin f
cat - - <<<once
for n in 1 2 3; do echo $n; done >m
cat m
while read -r n; do echo "got $n"; done <m >n
cat n
