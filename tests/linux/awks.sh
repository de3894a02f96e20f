# awk: fields, arrays, functions, getline, pipes, printf, regular expressions, uninitialised values.
printf 'alice 30 London\nbob 25 Paris\ncarol 35 London\n' >p
awk '{ print $1, $NF, NF, NR }' p
awk '$2 > 26 { s += $2; n++ } END { print s / n }' p
awk '{ c[$3]++ } END { for (k in c) print k, c[k] | "sort"; close("sort"); print "done" }' p
awk -F: -v OFS=- '$1 == "root" { $1 = $1; print $1, $3, $7 }' /etc/passwd
awk 'BEGIN { while ((getline line < "p") > 0) n++; print n; "echo piped" | getline x; print x }'
awk 'function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } BEGIN { print f(15) }'
awk 'BEGIN { printf "%5.2f|%-8s|%08d|%x|%c|%s\n", 3.14159, "left", 42, 255, 65, "x" "y" }'
awk '/o/ { gsub(/o/, "0"); print } !/o/ && !/0/ { print toupper($0) }' p
awk 'match($0, /[0-9]+/) { print substr($0, RSTART, RLENGTH), RSTART }' p
awk '{ split($0, a, ""); print length(a), index($0, "o") }' p
awk 'BEGIN { print length(), x + 0, "[" x "]", 1 == 1.0, "a" < "b", 10 < 9, "10" < "9" }' </dev/null
awk 'NR == 2, NR == 3' p
awk 'BEGIN { RS = "" } { print NR ": " $1 }' <<<"$(printf 'a b\nc\n\nd e\n')"
awk 'BEGIN { print substr("hello", 2, 3), tolower("ABC"), sprintf("%03d", 7), index("abc", "c") }'
awk '{ print > ($3 ".txt") }' p
cat London.txt Paris.txt
awk 'BEGIN { system("echo from system; exit 3"); exit 4 } END { print "end runs" }'
echo $?
awk 'BEGIN { print ENVIRON["HOME"], ARGC, ARGV[1] }' arg
awk 'BEGIN { printf "no newline" > "/dev/stderr" }' 2>&1
echo
awk '{ next } END { print NR }' p p
awk 'BEGIN { a["x", 1] = 2; for (k in a) { split(k, s, SUBSEP); print s[1], s[2] } delete a; print length(a) }'
awk 'BEGIN { n = split("c a b", v); asort(v); for (i = 1; i <= n; i++) printf "%s ", v[i]; print "" }'
awk 'BEGIN { print strtonum("0x1F"), and(12, 10), or(12, 10), xor(12, 10), lshift(1, 4) }'
awk 'BEGIN { print gensub(/(a)(b)/, "\\2\\1", "g", "abab") }'
awk 'BEGIN { print "to cat" |& "cat"; close("cat", "to"); "cat" |& getline x; print x }'
awk 'BEGIN { getline; print "first " $0; getline; print "second " $0 }' p
awk 'BEGIN { x["a"]; if ("a" in x) print "in"; if (!("b" in x)) print "not in" }'
seq 100000 | awk '{ s += $1 } END { print s }'
awk '{ print' p
echo $?
awk '{ print }' missing
echo $?
