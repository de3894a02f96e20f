# cp, install, mktemp, truncate, dd, sparse files, split, and what they keep.
umask 022
mkdir -p src/sub
echo text >src/a
chmod 750 src/a
ln -s a src/l
ln src/a src/h
mkfifo src/p
touch -d '2020-02-03 04:05:06.789012345' src/a
touch -h -d '2021-01-01 00:00:00' src/l
touch -d '2018-08-08 08:08:08' src/p
touch -d '2019-09-09 09:09:09' src/sub
cp -a src copy
(cd copy && stat -c '%n %F %a %h %y' a l h p sub)
cp -r src plain 2>/dev/null
cp src/l followed
stat -c '%F %a' followed
cp -P src/l link
stat -c %F link
cp -p src/a kept
stat -c '%a %y' kept
cp src/a src/sub/b
echo longer than before >c
cp src/a c
cat c
cp src missing/x
echo $?
cp src c
echo $?
cp a a 2>/dev/null
echo $?
cp c c
echo $?
cp -n src/a c
cp -u src/a c
cp -b c src/a
ls src
cp --parents src/sub/b copy
ls copy/src/sub
install -m 640 -D c deep/er/target
stat -c '%a %s' deep/er/target
install -d -m 711 x/y
stat -c %a x x/y
d=$(mktemp -d ./tmp.XXXXXX)
stat -c %a "$d"
f=$(mktemp "$d/f.XXXX")
stat -c '%a %s' "$f"
echo ${#f}
mktemp -u nowhere/XXX >/dev/null && echo unused
mktemp nodir/XXXX
echo $?
truncate -s 10000 s
stat -c %s s
echo x >>s
stat -c %s s
truncate -s -5000 s
stat -c %s s
truncate -s %512 s
stat -c %s s
od -An -tx1 s | tail -n 2
truncate -s 3G big
stat -c '%s %b' big
echo end >>big
stat -c %s big
tail -c 4 big
cp --sparse=always big big2
cmp -n 100000 big big2 && stat -c %s big2
rm big big2
dd if=/dev/zero of=z bs=1M count=5 2>/dev/null
stat -c %s z
printf abc | dd of=z bs=1 seek=10 conv=notrunc 2>/dev/null
od -c z | head -n 3
dd if=z bs=4 skip=2 count=2 2>/dev/null | od -An -c
dd if=/dev/zero of=z bs=512 count=1 2>&1 | head -n 2
stat -c %s z
printf 'hello world' | dd conv=ucase,swab 2>/dev/null
echo
dd if=missing
echo $?
seq 1000 >n
split -l 300 n part.
wc -l part.*
split -b 1k -d n num
stat -c '%n %s' num*
cat num* | cmp - n && echo same
split -n 3 n third
cat third?? | md5sum
csplit -s n 100 '{2}'
wc -l xx* | tail -n 1
rm -rf src copy
ls -d src copy
du --apparent-size -sb n
shred -u c && ls c
sync n
echo $?
