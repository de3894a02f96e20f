# find and xargs: tests, actions, prunes, depths, batches, null separators.
umask 022
mkdir -p t/a/b t/c 't/with space'
echo 1 >t/one
echo 22222 >t/a/two
: >t/a/b/empty
ln -s one t/link
ln -s nowhere t/broken
mkfifo t/pipe
chmod 600 t/one
touch -d '2000-01-01' t/a/two
find t | sort
find t -type f | sort
find t -type l | sort
find t -type d -empty | sort
find t -name 't*' | sort
find t -iname ONE
find t -path '*/b/*'
find t -size +3c -type f | sort
find t -perm 600
find t -perm -u+x -type d | wc -l
find t -newer t/a/two -type f | sort
find t -mtime +1000
find t -maxdepth 1 | sort
find t -mindepth 2 | sort
find t -depth -name 'a*'
find t -name a -prune -o -print | sort
find t -xtype l
find -L t -type f | sort
find t -lname one
find t -samefile t/one
find t -regex '.*/[ab]/.*' | sort
find t -type f -printf '%f %s %m %d %y\n' | sort
find t -type f -exec basename {} \; | sort
find t -type f -exec echo {} + | wc -w
find t -type f -print0 | sort -z | tr '\0' '\n'
find t -type f -execdir echo {} \; | sort
find t \( -name one -o -name two \) -not -path '*a*'
find t -name empty -delete
ls t/a/b
find t -quit
find missing
echo $?
find t -user root -group root | wc -l
find t -links 1 -type f | sort
find t -name pipe -ls | awk '{ print $3, $4, $5, $6, NF }'
seq 10 | xargs
seq 10 | xargs -n 3
seq 3 | xargs -I{} echo item {}
seq 4 | xargs -n 1 -P 4 | sort
printf 'a b\0c\0' | xargs -0 -n 1 echo
echo "'quoted arg' plain" | xargs -n 1
xargs echo none </dev/null
xargs -r echo none </dev/null
seq 3 | xargs -n 1 sh -c 'exit 1' sh
echo $?
echo x | xargs nosuch
echo $?
echo x | xargs sh -c 'exit 255'
echo $?
seq 5 | xargs -t -n 5 echo 2>&1
seq 20000 | xargs echo | wc
seq 100000 | xargs -s 4096 echo | awk 'length > 4096 { bad = 1 } END { print bad + 0 }'
find t -print | sort | xargs -d '\n' stat -c '%n %F' | head -n 3
find t -type f | xargs rm
find t -type f | wc -l
find t -depth -exec rmdir {} \; 2>/dev/null
find t | sort
