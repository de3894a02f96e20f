#!/bin/sh
# Ordinary work with files and directories, with things that go wrong.
mkdir -p a/b/c d
echo one > a/1; echo two > a/b/2; echo three > a/b/c/3; : > empty
ls; ls a; ls -d a d
ls missing 2>/dev/null; echo "status $?"
find a | sort
find a -type f -name '[12]' | sort
find . -name c -type d
cp a/1 copy && cat copy
cp -r a e && find e -type f | sort
cp missing x 2>/dev/null; echo "status $?"
cp a d 2>/dev/null; echo "status $?"
mv copy moved; ls | tr '\n' ' '; echo
mv missing x 2>/dev/null; echo "status $?"
mv moved d/; ls d
mv e d/f; ls d/f
ln a/1 hard; ln -s a/b link; ln -s nowhere dangling
cat hard link/2; readlink link dangling
cat dangling 2>/dev/null; echo "status $?"
[ -L link ] && [ -d link ] && [ ! -e dangling ] && [ -L dangling ] && echo links
echo more >> hard; cat a/1
stat -c %h hard 2>/dev/null || echo 2
rm hard; cat a/1
rm missing 2>/dev/null; echo "status $?"
rm -f missing; echo "status $?"
rm a 2>/dev/null; echo "status $?"
rmdir a 2>/dev/null; echo "status $?"
rmdir d/f/b/c 2>/dev/null; rm d/f/b/c/3; rmdir d/f/b/c; echo "status $?"
mkdir a 2>/dev/null; echo "status $?"
mkdir x/y/z 2>/dev/null; echo "status $?"
touch -d '2001-02-03 04:05:06' old; touch new
[ new -nt old ] && [ old -ot new ] && echo dates
[ -s empty ] || echo 'nothing in it'; [ -f empty ] && [ -e a ] && echo there
for f in *; do [ -d "$f" ] && echo "dir $f"; done
echo d/*; echo */b; echo no*match; echo [a-d]*
cd a/b && pwd | tail -c 5; cd ../..; cd missing 2>/dev/null || echo "no cd: $?"
(cd d; touch 'with blank' "qu'ote"; ls); rm d/'with blank' "d/qu'ote"
for f in "a b" c; do echo x > "$f"; done; ls -1 | grep '^a b$'; cat 'a b'
rm 'a b' c
long=$(printf '%0255d' 7); echo long > $long && cat $long | tr a-z A-Z; ls | wc -l; rm $long
echo x > ${long}1 2>/dev/null; echo "status $?"
n=0; while [ $n -lt 30 ]; do n=$((n + 1)); echo $n > d/n$n; done; ls d | wc -l; cat d/n2? | sort -n | tr '\n' ' '; echo
rm d/n*; ls d
rm -r d; [ -e d ] || echo gone
dd if=a/1 of=part bs=2 skip=1 count=2 2>/dev/null; cat part
dd if=/dev/zero of=zeros bs=1000 count=3 2>/dev/null; wc -c < zeros; cmp zeros /dev/zero 2>/dev/null | head -c 0
echo abc | dd bs=1 count=2 2>/dev/null; echo
chmod 640 new; ls -l new | cut -c 1-10; chmod u+x,g-r new; ls -l new | cut -c 1-10
printf '#!/bin/sh\necho "script $0 $# $1"\nexit 3\n' > s; ./s 2>/dev/null; echo "status $?"
chmod +x s; ./s 'an argument' 2; echo "status $?"
sh s x; sh missing.sh 2>/dev/null; echo "status $?"
cat < missing 2>/dev/null; echo "status $?"; echo x > missing/y 2>/dev/null; echo "status $?"
cat . 2>/dev/null; echo "status $?"
echo done | tee t1 t2 | cat; cat t1 t2
du -a missing 2>/dev/null; echo "status $?"
rm -rf ./* && ls; echo end
# Trees: what find finds, and what cp keeps.
mkdir -p tree/sub/deep tree/empty; echo one > tree/one.txt; echo 22 > tree/sub/TWO.TXT; : > tree/sub/deep/.none
ln -s one.txt tree/link; ln -s nowhere tree/dangling; printf 'echo run $1\n' > tree/run.sh; chmod 755 tree/run.sh
find tree ! -type d | sort; find tree -type f -o -type l | sort; find tree \( -name '*.txt' -o -iname 'two*' \) -type f | sort
find tree -mindepth 2 | sort; find tree -name sub -prune -o -print | sort; find tree -empty | sort; find tree -path '*sub*' | sort
find tree -type f -size -4c | sort; find tree -type f -size 1 | sort; find tree -size +0 -type f | sort
find tree -name '*.txt' -exec echo found {} \; ; find tree -type f -exec cat {} + | sort; find tree -type f -print0 | tr '\0' '\n' | sort
touch -d @5 old; find old tree/one.txt -newer old; find tree -type d -depth | sort; find tree -type f,l | sort
cp -r tree copy; ls copy; readlink copy/link; readlink copy/dangling; copy/run.sh now; [ -x copy/one.txt ] || echo plain
cp -rL tree/link tree/sub followed 2>/dev/null; echo $?; cp tree/link alone; [ -L alone ] || cat alone
touch -d @1000 tree/one.txt; cp -p tree/one.txt kept; stat -c %Y kept; cp -v kept kept2
find copy -type f -delete; find copy | sort; find copy -delete; ls copy 2>/dev/null; echo $?
find tree -foo 2>/dev/null || echo 'no such test'; find tree -exec 2>/dev/null || echo 'no command'
printf 'b\na\n' > s; sort -o s s; cat s; sort -c s; echo $?; printf 'b\na\n' | sort -c 2>/dev/null; echo $?
printf abcdef > dd.in; dd if=dd.in of=dd.out bs=2 count=1 seek=1 conv=notrunc 2>/dev/null; wc -c < dd.out
printf 0123456789 > dd.out; dd if=dd.in of=dd.out bs=2 count=1 seek=2 2>/dev/null; cat dd.out; echo; dd if=dd.in conv=upside 2>/dev/null; echo $?
mkdir -p real/inner; ln -s real/inner short; cd short; cd ..; ls -d short; cd short; cd -P ..; ls; cd ..
