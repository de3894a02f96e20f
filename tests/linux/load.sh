# More at once: many processes, many files, deep folders, big data through several programs.
for i in $(seq 200); do /bin/echo "$i"; done | md5sum
for i in $(seq 20); do (for j in $(seq 20); do echo "$i $j"; done >out.$i) & done
wait
cat out.* | sort -n -k1,1 -k2,2 | md5sum
mkdir many
(cd many && seq 2000 | xargs touch)
find many -type f | wc -l
ls many | sort -n | tail -n 1
(cd many && for f in 1??; do mv "$f" "x$f"; done)
ls many | grep -c ^x
rm -r many
d=deep
for i in $(seq 60); do d=$d/$i; done
mkdir -p "$d"
echo bottom >"$d/file"
cat "$d/file"
find deep | wc -l
(cd "$d" && pwd | tr / '\n' | wc -l)
rm -r deep
seq 60000 >big
wc big
split -n l/7 big piece.
for p in piece.*; do (sort -rn "$p" | gzip -c >"$p.gz") & done
wait
zcat piece.*.gz | sort -n | cmp - big && echo same
rm piece.*
head -c 2000000 /dev/zero | tr '\0' x | fold -w 99 | awk '{ n += length } END { print n }'
seq 100 | xargs -P 8 -I{} sh -c 'echo $(({} * {}))' | sort -n | md5sum
cat big big big | gzip -c | gzip -dc | sha256sum
perl -e 'for (1 .. 50) { my $p = fork; exit $_ unless $p } my $s = 0; $s += $? >> 8 while wait > 0; print "$s\n"'
perl -e 'my $d = 0; sub f { my $n = shift; my $p = fork; if (!$p) { exit($n ? f($n - 1) : 7) } waitpid $p, 0; return $? >> 8 } print f(20), "\n"'
bash -c 'f() { [ $1 = 0 ] && echo bottom || (f $(($1 - 1))); }; f 40'
x=$(for i in $(seq 2000); do echo "line $i"; done)
echo "$x" | md5sum
while read -r a; do case $a in *99) echo "$a" ;; esac; done <<<"$x" | wc -l
for i in $(seq 50); do echo $i >>append & done
wait
sort -n append | md5sum
for i in 1 2 3 4; do (for j in $(seq 100); do printf '%s\n' "process $i line $j"; done >>shared) & done
wait
sort shared | uniq -d | wc -l
wc -l <shared
