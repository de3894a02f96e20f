# diff, diff3, sdiff, cmp and patch-like output.
seq 10 >a
sed -e 3d -e 's/7/seven/' -e '10a eleven' a >b
diff a b
echo $?
diff -u --label a --label b a b
diff -c --label a --label b a b
diff -y -W 30 a b
diff -q a b
diff -s a a
diff --normal -i <(echo ABC) <(echo abc) && echo same
diff -w <(echo 'a  b') <(echo 'a b') && echo blank
diff -B <(printf 'a\n\nb\n') <(printf 'a\nb\n') && echo lines
diff -e a b
diff -n a b
mkdir d1 d2
echo x >d1/both
echo y >d2/both
echo 1 >d1/only
mkdir d2/sub
diff -r d1 d2
echo $?
diff -rN d1 d2 | head -n 5
diff a missing
echo $?
diff a d1
printf 'no newline' >n1
printf 'no newline\n' >n2
diff n1 n2
printf 'a\0b' >bin1
printf 'a\0c' >bin2
diff bin1 bin2
diff -a bin1 bin2 | od -c | head -n 2
diff3 a b <(sed 's/5/five/' a) | head -n 12
diff3 -m a a b | tail -n 2
sdiff -s -w 40 a b
diff --brief -r d1 d1 && echo nothing
diff <(seq 20000) <(seq 20000 | sed 10000d)
diff -U0 --label x --label y a b | grep -c '^@@'
diff --from-file=a b a
