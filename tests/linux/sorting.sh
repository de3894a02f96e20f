# sort in its ways: keys, numbers, versions, months, unique, merge, check, large input.
printf 'b 10\na 9\nc 100\na 1\n' >f
sort f
sort -r f
sort -k2,2n f
sort -k1,1 -k2,2nr f
sort -u -k1,1 f
sort -c f
echo $?
sort f | sort -c && echo sorted
printf '1.10\n1.9\n1.2\n' | sort -V
printf 'Mar\nJan\nFeb\n' | sort -M
printf '2K\n1M\n3\n' | sort -h
printf '1e3\n2\n-5\n0x10\n' | sort -g
printf 'B\na\nC\n' | sort -f
printf 'B\na\nC\n' | sort
printf 'a:3\nb:1\n' | sort -t: -k2
printf '  x\n y\nz\n' | sort -b
printf 'a\0c\0b\0' | sort -z | tr '\0' ' '
echo
sort -s -k1,1 f
sort -o f f
cat f
seq 1 3 30 | sort -n >odd
seq 2 3 30 | sort -n >even
sort -nm odd even | tr '\n' ' '
echo
seq 200000 | awk '{ print ($1 * 7919) % 200003 }' >big
md5sum <big
sort -n big | md5sum
sort big | md5sum
sort -S 1M -T . big | md5sum
sort --parallel=4 -S 2M -nr big | head -n 2
sort -R --random-source=/dev/zero big | sort -n | md5sum
ls
sort missing
echo $?
sort -k0 f
echo $?
awk '{ print length($0) }' big | sort -n | uniq -c | sed 's/^ *//'
join <(sort f) <(sort f) | wc -l
look a f 2>/dev/null
sort -t '' f
echo $?
