# Errors of calls about files, as programs tell them.
echo f >f
mkdir d
touch d/x
cat d
cat f/x
cat f/
cat missing/x
cat ''
ls f/
mkdir d
mkdir f/x
mkdir -p f/x
mkdir missing/x
mkdir -p a/b/c a/b && ls a
mkdir ''
rmdir d
rmdir f
rmdir missing
rmdir .
rmdir d/..
rm d
rm -r .
rm f/
touch f/
touch missing/x
touch d/
touch new/
echo $?
ln -s f l
ls l/
cat l/
ln -s d ld
ls ld ld/
rmdir ld
rmdir ld/
mv ld/ x
echo $?
ls -1
mv missing x
mv f d/x/
mv f missing/
mv f d && ls d
mv d/f .
mv d/. x
mv . x
mkdir -p p/q
mv p p/q/r
cp f d/x/y
: >d
: >missing/x
: >f/x
(cd f) 2>&1
n=$(printf 'n%.0s' $(seq 255))
touch "$n" && ls | grep -c nnn
touch "${n}n" 2>&1 | tail -c 20
p=$(printf 'dir/%.0s' $(seq 1100))
ls "$p" 2>&1 | tail -c 20
cat "$(printf './%.0s' $(seq 1000))f"
cat "$(printf './%.0s' $(seq 2050))f" 2>&1 | tail -c 20
ls -d //tmp/../tmp//. ///
mkdir t
chmod 0 t
ls t && echo root may
touch t/x && cat t/x && echo all
rm -r t
mknod null c 1 3 && cat null && echo x >null
stat -c '%F %t,%T' null
mknod p2 p && stat -c %F p2
cat /proc/self/nosuch
touch /proc/nosuch 2>&1 | sed 's/: [A-Z].*//'
echo x >/dev/null/x
ls /dev/null/
cat </dev/zero | head -c 3 | od -An -tx1
head -c 4 /dev/urandom | wc -c
touch 'new
line' && ls -b new*
touch $'\x80\xff' && ls -b | grep '\\'
touch . && echo touched
chmod 700 missing
truncate -s 5 d
truncate -s 5 missing/x
truncate -s -1 f && stat -c %s f
truncate -s 9E f 2>&1 | sed 's/.*: //'
tee d <f
tail -n 1 d
wc d
head d
sort d
cmp f d
