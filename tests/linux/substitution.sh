# Command and process substitution, and the descriptors behind them.
diff <(printf 'a\nb\n') <(printf 'a\nc\n')
echo $?
paste <(seq 3) <(seq 4 6) <(seq 7 9)
comm -12 <(seq 1 10) <(seq 5 15 | sort) 2>/dev/null
cat <(echo one) <(echo two; cat <(echo three))
tee >(sed 's/^/first: /' >o1) >(wc -c >o2) <<<text >/dev/null
while [ ! -s o1 ] || [ ! -s o2 ]; do sleep 0.05; done
cat o1 o2
while read -r n; do sum=$((sum + n)); done < <(seq 100)
echo "$sum"
echo "$(<o1)"
x=$(printf 'line\n\n\n')
echo "[$x]"
y=$(exit 4)
echo $?
z=$(echo out; echo err >&2) 2>&1
echo "$z"
echo "$(cat <(echo a) <(echo b) | tr '\n' ' ')"
f=<(:) ; case $f in /dev/fd/*) echo "a path" ;; esac
sort -m <(seq 1 2 9) <(seq 2 2 9) | tr '\n' ' '
echo
join <(printf '1 a\n2 b\n3 c\n') <(printf '1 x\n3 z\n')
wc -l < <(yes | head -n 1000)
exec 4< <(seq 3)
read -r a <&4
read -r b <&4
echo "$a$b"
exec 4<&-
exec 5> >(tr a-z A-Z >o3)
echo shout >&5
exec 5>&-
while [ ! -s o3 ]; do sleep 0.05; done
cat o3
bash -c 'cat "$1"' _ <(echo through an argument)
awk 'NR == FNR { a[$1] = $2; next } { print $0, a[$1] }' <(printf '1 x\n2 y\n') <(printf '2\n1\n')
head -c 5 <(cat /dev/zero) | od -An -tx1
echo $(echo 'a  b' "c  d")
echo "${PIPESTATUS[0]}"
