# sed: addresses, substitutions, hold space, in place, branches, files.
seq 10 >n
printf 'hello world\nfoo bar\nbaz foo\n' >t
sed 's/o/0/' t
sed 's/o/0/g; s/0/O/2' t
sed -n '2p; $p' t
sed '2d' t
sed -n '3,5p' n
sed -n '0~3p' n
sed '2,4!d' n
sed -n '/3/,/6/p' n
sed -n '/foo/=' t
sed 's/\(\w*\) \(\w*\)/\2 \1/' t
sed -E 's/(\w+) (\w+)/\U\1\E \u\2/' t
sed 's/foo/[&]/I' t
sed '1i\before' t
sed '1a after' t
sed '2c changed' t
sed 'y/abc/xyz/' t
sed '$!N; s/\n/+/' n
sed -n '1!G; h; $p' n
sed ':a; N; $!ba; s/\n/,/g' n
sed '5q' n
sed '3q7' n
echo $?
sed -i 's/foo/FOO/' t
cat t
sed -i.bak '1d' t
ls t t.bak
wc -l t t.bak
sed -s -n '$p' n t
sed -n 'l' <<<"$(printf 'tab\there\001\n')"
sed -n '/bar/w out' t.bak
cat out
sed '1r out' n | head -n 3
echo 'a.b.c' | sed 's/\./\n/g'
echo aaa | sed 's/a*/x/g'
echo abc | sed 's/b*/-/g'
echo path/to/file | sed 's,/,::,g'
sed --expression='s/1/one/' --expression='s/2/two/' n | head -n 2
printf 's/3/three/\n' >script
sed -f script n | sed -n 3p
sed -n '$=' n
sed -z 's/\n/;/g' n
echo
seq 3 | sed 'n; d'
seq 6 | sed -n '2{p; n; p}'
sed 's/x/' n
echo $?
sed p missing
echo $?
seq 50000 | sed 's/$/!/' | md5sum
echo one | sed '/one/{s//two/; t end; s/two/three/; :end}'
echo hi | sed 'e echo executed'
sed -u 1q <n
sed 10000000000q n | tail -n 1
