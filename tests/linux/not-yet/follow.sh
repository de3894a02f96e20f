# tail -f, by a name and by a descriptor, of a file that grows, is cut and is replaced.
echo first >t
shown() { until grep -q "$1" out; do sleep 0.05; done; }
tail -f t >out 2>&1 & p=$!
shown first
echo second >>t
shown second
printf third >>t
shown third
echo x >t
shown x
kill $p
wait $p 2>/dev/null
echo $?
cat out
rm out
tail -n 1 -F t >out 2>&1 & p=$!
shown x
mv t old
echo y >t
shown y
kill $p
wait $p 2>/dev/null
echo $?
cat out
sleep 0.3 & p=$!
tail -f --pid $p t
echo $?
