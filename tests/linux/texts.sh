# Coreutils that change text: cut, paste, join, comm, tr, fold, fmt, pr, nl, expand, column-wise.
printf 'a:b:c\nd:e:f\nnodelim\n' >t
cut -d: -f2 t
cut -s -d: -f1,3 --output-delimiter=- t
cut -c1-2 t
cut -b2- t
cut --complement -d: -f2 t
paste t t | head -n 1
paste -s -d, t
seq 6 | paste - - -
printf '1 a\n2 b\n3 c\n' >l
printf '2 x\n3 y\n4 z\n' >r
join l r
join -a 1 -a 2 -e - -o 0,1.2,2.2 l r
join -v 1 l r
comm l r
comm -3 l r
echo 'Hello World' | tr 'a-zA-Z' 'n-za-mN-ZA-M'
echo 'aabbccc' | tr -s b-c
echo 'a1b2' | tr -d '[:digit:]'
echo 'a b' | tr -c 'a-z\n' _
echo abc | tr a-c x
s='The quick brown fox jumps over the lazy dog and runs far away from here.'
echo "$s" | fold -w 20
echo "$s" | fold -s -w 20
echo "$s $s" | fmt -w 40
echo "$s" | fmt -u -w 30
seq 5 | nl
printf 'a\n\nb\n' | nl -ba -w3 -s') '
seq 20 | pr -3 -t -l 7
seq 3 | pr -h title -l 20 -D date | head -n 8
printf 'a\tb\n' | expand -t 4
printf '        x\n' | unexpand -a | od -c | head -n 1
seq 5 | tac
printf 'x|y|z' | tac -s '|'
echo
echo stressed | rev
printf 'b a\nc b\nd c\n' | tsort
printf 'a b\nb a\n' | tsort 2>&1
seq 3 | shuf --random-source=/dev/zero
shuf -i 1-5 --random-source=/dev/zero | sort | tr '\n' ' '
echo
printf 'a\na\nb\na\n' | uniq -c
printf 'a\nA\nb\n' | uniq -i
printf 'a\na\nb\n' | uniq -d
printf 'a\na\nb\n' | uniq -u
printf 'k 1\nj 1\nk 2\n' | uniq -f 1
wc t
wc -L -c -w -l t
printf 'no newline' | wc -l
seq 100 | head -n 3
seq 100 | head -n -97
seq 100 | tail -n 2
seq 100 | tail -n +99
seq 100 | head -c 10
echo
seq 100 | tail -c 7
head -n 1 t l
tail -qn 1 t l
printf 'x %s\n' 1 2 | column -t
printf 'tab\tand\x01\n' | cat -A
cat -n t
printf 'a\n\n\n\nb\n' | cat -s
basename /usr/lib/file.so .so
dirname /usr/lib/file.so /x y
pathchk -p 'bad*name'
echo $?
echo -n x; echo -e '\ty\c'; echo
yes no | head -n 2
ptx -G -A <t 2>/dev/null | wc -l
