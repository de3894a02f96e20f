# What the shell expands: defaults, patterns, cases, quotes, braces, globs.
unset u
e= v=hello.tar.gz p=/usr/local/bin/program
echo "${u-default} ${e-default} ${e:-default} ${v+set} ${u+set}"
echo "${u:=given} $u ${#v} ${v%.*} ${v%%.*} ${v#*.} ${v##*.} ${p##*/} ${p%/*}"
echo "${v:0:5} ${v: -2} ${v:6:3} ${v/l/L} ${v//l/L} ${v/#he/HE} ${v/%gz/xz} ${v^} ${v^^} ${p,,}"
(: "${nothing:?is missing}") 2>&1
echo {a,b}{1..3} {01..10..3} {z..w} x{,y}z {single}
echo ~ ~/x "~"
mkdir -p d/e d/f
touch d/a.c d/b.c d/.hidden "d/with space" 'd/[x]'
cd d || exit
echo *
echo *.c .[!.]* e*/ '[x]' [[]x]
echo nomatch*
shopt -s nullglob
echo nomatch* end
shopt -u nullglob
shopt -s dotglob extglob globstar
echo *
echo !(*.c) @(a|b).c +([a-z]).c
echo **
shopt -s failglob
(echo none*) 2>&1
shopt -u failglob
echo $'tab\there\x41\u0041\101' $'it''s'
printf '%q\n' "a b" "it's" $'\n' ''
printf '%5d|%-5d|%05d|%+d|%x|%X|%o|%e|%.3f|%s|%c|%%\n' 42 42 42 42 255 255 8 12345.678 3.14159 str char
printf '%b' 'a\tb\n'
printf '%s-%s\n' 1 2 3
printf '%*s|%-*s|\n' 6 right 6 left
printf '%d\n' "'A" 0x10 010 abc
echo status $?
printf -v kept '%03d' 7
echo "$kept"
x='a b   c'
echo $x "$x"
set -f
echo *
set +f
echo "$(echo "nested $(echo "deep")")" `echo old`
echo "${!v*}" "${x@Q}" "${x@U}"
