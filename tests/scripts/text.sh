#!/bin/sh
# Ordinary work with texts: making, counting, sorting, cutting, comparing.
cat > fruit.txt <<'END'
apple:3:red
banana:12:yellow
cherry:100:red
date:7:brown
elderberry:12:black
fig:3:green
grape:45:green
END
wc -l < fruit.txt
head -n 2 fruit.txt
tail -n 2 fruit.txt
tail -n +6 fruit.txt
sort -t : -k 2 -n fruit.txt
sort -t : -k 3 -k 1,1r fruit.txt | head -n 4
sort -r fruit.txt | cut -d : -f 1 | tr a-z A-Z
cut -d : -f 3 fruit.txt | sort | uniq -c | sort -rn
cut -d : -f 3 fruit.txt | sort | uniq -d
cut -d : -f 3 fruit.txt | sort -u
cut -c 1-3 fruit.txt | tr '\n' ' '; echo
cut -d : -f 1,3 fruit.txt | head -n 1
grep red fruit.txt
grep -c e: fruit.txt
grep -v -n r fruit.txt
grep -i 'APP*LE' fruit.txt
grep -E '^(fig|date):' fruit.txt
grep nothing fruit.txt; echo "status $?"
grep x missing.txt 2>/dev/null; echo "status $?"
cat missing.txt fruit.txt 2>/dev/null | wc -c; cat missing.txt 2>/dev/null; echo "status $?"
seq 1 20 | tail -n 5 | tr '\n' ,; echo
seq 10 -3 0 | tr -d 1 | tr -s '\n'
seq -w 8 11; seq -s + 5
printf '%s\n' one two two three | uniq
echo 'the quick  brown fox' | tr -s ' ' '\n' | sort | tr '\n' ' '; echo
echo hello | tr 'a-y' 'b-z'; echo 'a1b2' | tr -cd 0-9; echo
seq 5 > five; seq 3 7 > other
diff five other; echo "status $?"
diff -u five other | tail -n +3
diff five five; echo "status $?"
cmp five other > verdict; echo "status $?"
cmp -s five five && echo same
seq 3 | tee copy | wc -l; cat copy
printf 'b\na\nc' | sort; printf '10\n9\n1e1\n' | sort -n | head -n 1
wc five fruit.txt | tr -s ' '
sha256sum five
head -c 7 fruit.txt; echo
echo one two three | wc -w
printf 'a b\nc\n' | xargs -n 1 echo item
printf '%s\n' x y | xargs -I N echo '<N>'
yes no | head -n 3
printf 'tab\there\n' | cut -f 2
while IFS=: read -r name count colour; do
    [ "$count" -gt 10 ] && echo "$name is $colour: $count"
done < fruit.txt
total=0
for n in $(cut -d : -f 2 fruit.txt); do total=$((total + n)); done
echo "total $total"
sort -n missing.txt 2>/dev/null || echo "no sort: $?"
printf '%0100000d\n' 7 > line; wc -c < line; tr 0 x < line | grep -c x7; cut -c 99999- line; sort line five | tail -n 1
basename /a/b/text.txt .txt; dirname /a/b/text.txt; dirname text.txt
# Ends, sets, keys and dates.
seq 9 > nine; head -n -7 nine; head -c -14 nine; tail -n -2 nine; tail +8 nine; head -n 1 nine nine | head -n 2
printf 'one two\n' | tr -cs 'a-z' '[\n*]'; echo abc | tr abc '[x*2]y'; echo aXa | tr '[=a=]' b
printf 'b:y2\nA:x1\na:y1\n' > keys; sort -f keys; sort -t: -k2.2 keys; sort -t: -k2.1,2.1 -k1f keys; sort -t: -k 2.2,2.2r -k 1,1 keys
printf '  a b\n\n\tc\n' | xargs -I{} echo '[{}]'; env - A=1 env; env ./nothing 2>/dev/null; echo $?
date -u -d @1700000000 '+%j %C %I %k %l %p %P %r %c %x %X %N %-d %_m %-H'; date -u -d '2024-02-29 12:30' +%s
date -d nonsense 2>/dev/null; echo $?
printf 'a 1 x\nb 1 X\nB 2 x\n' > runs; uniq -f 1 runs; uniq -i -f 2 runs; uniq -s 2 -w 1 runs; uniq -c -i -s 4 runs out; cat out
uniq -f x runs 2>/dev/null; echo $?; uniq runs out more 2>/dev/null || echo 'too many'
stat -c '[%6s] [%-6s] [%06s] %f %N' runs
exit $((total % 7))
