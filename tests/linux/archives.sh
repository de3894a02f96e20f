# tar, gzip, xz and zgrep's relatives: what goes in comes out, with links, modes, times and holes.
umask 022
mkdir -p in/sub/deep
seq 5000 >in/numbers
ln in/numbers in/hard
ln -s numbers in/soft
ln -s nowhere in/broken
mkfifo in/pipe
chmod 751 in/sub
chown 1000:1000 in/sub/deep
echo x >in/sub/x
touch -d '2010-10-10 10:10:10' in/numbers in/sub/x in/sub/deep in/sub in
touch -h -d '2010-10-10 10:10:10' in/soft in/broken
touch -d '2010-10-10 10:10:10' in/pipe in
tar cf t.tar --sort=name --format=gnu in
tar tf t.tar
tar tvf t.tar
md5sum <t.tar
mkdir out
tar xpf t.tar -C out
(cd out && find in -printf '%p %y %m %U:%G %n %TY-%Tm-%Td\n' | sort)
diff -r --no-dereference in out/in 2>&1 | head -n 3
tar df t.tar && echo no differences
tar xOf t.tar in/sub/x
tar czf t.tgz in
tar tzf t.tgz | wc -l
tar cJf t.txz in
tar tJf t.txz | wc -l
tar cf - in | tar xf - -C out && echo through a pipe
tar rf t.tar in/sub/x
tar tf t.tar | tail -n 1
tar --delete -f t.tar in/hard
tar tf t.tar | wc -l
tar cf e.tar --exclude='*.x' --transform 's,^in,renamed,' in
tar tf e.tar | head -n 1
tar xf missing.tar
echo $?
head -c 3000 t.tar >cut.tar
tar tf cut.tar 2>&1 | tail -n 1
truncate -s 1M hole
printf x | dd of=hole seek=500000 bs=1 conv=notrunc 2>/dev/null
tar cSf s.tar hole
[ "$(stat -c %s s.tar)" -lt 100000 ] && echo sparse
tar xSf s.tar -C out && cmp hole out/hole && echo same hole
gzip -k in/numbers 2>/dev/null
gzip -nc in/numbers >n.gz
gzip -l n.gz
gzip -t n.gz && zcat n.gz | cmp - in/numbers && echo same
md5sum <n.gz
gzip -9nc in/numbers | wc -c
head -c 100 n.gz >cut.gz
gzip -t cut.gz
echo $?
echo plain | gzip -d
echo $?
gunzip -c n.gz | tail -n 1
cp in/numbers a
gzip a
ls a*
gunzip a.gz
ls a*
xz -k a
xz -t a.xz && xz -dc a.xz | cmp - a && echo same
xz -l --robot a.xz | cut -f1-3 | head -n 1
echo corrupt | xz -d
echo $?
zcmp n.gz n.gz && zdiff n.gz n.gz && echo zsame
cat n.gz n.gz | gunzip | wc -l
