# bash computes: bases, shifts, overflow, assignments, errors.
echo $((2 + 3 * 4)) $((7 / 2)) $((-7 / 2)) $((-7 % 3)) $((2 ** 62)) $((1 << 63))
echo $((0x1f)) $((017)) $((36#zz)) $((2#1011)) $((9223372036854775807 + 1))
i=5
echo $((i++ + ++i)) $i $((i += 3)) $((i *= 2)) $((i <<= 1)) $((i ^= 0xff)) $((~i))
echo $((i > 3 ? 1 : 0)) $((!i)) $((i && 0)) $((i || 0)) $((1, 2, 3))
(echo $((1 / 0))) 2>&1
(echo $((08))) 2>&1
let "x = 4" "y = x * x"
echo "$x $y $?"
((x - 4))
echo $?
for ((n = 0; n < 5; n++)); do printf '%d ' $((n * n)); done
echo
declare -i number=3*4
echo $number
expr 3 + 4 \* 5
expr length abcdef
expr substr abcdef 2 3
expr abc : 'a\(.\)c'
expr 5 \> 3 \& 2 \< 1
echo $?
expr 1 / 0
echo $?
factor 97 360360 18446744073709551557
seq -s, 1 3 20
seq -w 8 11
seq 1 .25 2
numfmt --to=iec 1024 1536 1048576 999999999
numfmt --from=si 1K 2M 3G
printf '%s\n' 1000 20 3 | sort -n | numfmt --to=si
awk 'BEGIN { print 2 ^ 10, int(-3.7), 17 % 5, sqrt(2), atan2(0, -1), exp(1), substr(log(10), 1, 7) }'
