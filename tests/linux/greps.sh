# grep: patterns, contexts, counts, recursion, binary files, statuses.
printf 'apple\nbanana\ncherry\nApple pie\napp.le\n' >f
grep app f
grep -i apple f
grep -v an f
grep -c a f
grep -n '^a' f
grep -o '[aeiou]\+' f | head -n 4
grep -w apple f
grep -x apple f
grep -F app.le f
grep -E 'apple|cherry' f
grep -E '(an){2}' f
grep -P '(?<=ch)e' f
grep -A 1 banana f
grep -B 1 -n cherry f
grep -C 1 cherry f
grep -m 2 a f
grep -q zebra f
echo $?
grep -L zebra f
grep -l apple f
grep pattern missing
echo $?
grep -s pattern missing
echo $?
grep '[' f
echo $?
mkdir -p d/e
echo needle >d/x
echo needle >d/e/y
printf 'bin\0needle\n' >d/bin
ln -s x d/link
grep -r needle d | sort
grep -R needle d | sort
grep -rl needle d | sort
grep -rh --include=x needle d
grep -a needle d/bin | od -c | head -n 1
grep -b cherry f
grep -e apple -e banana f
grep -f <(echo cherry) f
grep -z -c . <(printf 'a\0b\0')
grep --color=always -o le f | od -c | head -n 2
seq 100000 | grep -c 9
seq 100000 | grep -E '^(.).*\1$' | wc -l
grep '' /dev/null
echo $?
echo abc | grep -E '^(a|b)*c?'
echo 'x=1' | grep -oE '[a-z]=[0-9]'
grep needle d
echo $?
zgrep -c a <(gzip -c f)
egrep -c a f 2>/dev/null
fgrep -c . f 2>/dev/null
yes | grep -m 1 y
