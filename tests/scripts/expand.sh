#!/bin/sh
# Here-documents, quotes, parameters, arithmetic, substitution, splitting.
name=World; unset none; empty=
cat <<END
Hello $name, $((6 * 7)), $(echo sub), \$name, ${none:-default}
  "quotes" 'stay' \\ `echo back`
joined \
line
END
cat <<'END'
$name $((1)) `no` \n \
END
cat <<-END
	tabs
		go $name
	END
cat <<A; cat <<B
first
A
second
B
tr a-z A-Z <<END | sort -r
one
two
END
echo "$(cat <<END
inside $name
END
)"
path=/usr/local/lib/file.tar.gz
echo ${path##*/} ${path%/*} ${path%%.*} ${path#*.} ${path##*.} ${#path}
echo ${none-a} ${empty-b} ${none:-c} ${empty:-d} ${name:-e} "${empty:+f}" "${name:+g}"
echo ${new:=made} $new; echo "${name}s" "${name%d}k" "$name's"
(echo ${none:?is missing}) 2>/dev/null; echo $?
v='a*b?c'; echo "${v#*'*'}" "${v%'?'*}"; pattern='*o'; echo ${name#$pattern} ${name#"$pattern"}
echo $((1 + 2 * 3)) $(((1 + 2) * 3)) $((17 / 5)) $((17 % 5)) $((-17 / 5)) $((-17 % 5))
x=5; echo $((x * x)) $(($x + 1)) $((x > 3 && x < 10)) $((x == 5 ? 10 : 20)) $((x += 2)) $x
echo $((0x1f)) $((010)) $((1 << 10)) $((255 & 15 | 64)) $((~0)) $((!x)) $((2147483647 + 1))
(echo $((1 / 0))) 2>/dev/null; echo $?; (echo $((1 +))) 2>/dev/null; echo $?
echo "a  b" a  b 'c  d'; echo a\ \ b "x\"y" 'x"y' "it's" \$name '$name' "\$name"
echo "line
break" 'and
another'
s='  lead and  trail  '; echo $s; echo "$s"; set -- $s; echo $#
IFS=:; p='a:b::c'; set -- $p; echo $# "$3" "$4"; echo "$*"; IFS=' '; echo "$*"; unset IFS
for w in $(printf 'p q\nr'); do echo "<$w>"; done; for w in "$(printf 'p q\nr')"; do echo "<$w>"; done
result=$(printf 'x\n\n\n'); echo "[$result]"; result=$(false); echo $?; echo "[$(exit 3)]" $?
echo $(echo $(echo nested $(echo deep))) `echo a \`echo b\``
touch f1 f2 g1 .hidden; echo f* ?1 [fg]1 [!f]1 .h* z* 'f*' "f*" f\*; set -f; echo f*; set +f
q='f*'; echo $q "$q"; mkdir -p sub; touch sub/f3; echo */f* sub/*
case f1 in $q) echo glob;; esac; case 'f*' in "$q") echo literal;; esac
read -r one two rest <<END
first second third  fourth
END
echo "$one|$two|$rest"
IFS=, read -r a b <<END
1,2,3
END
echo "$a|$b"
printf '%5s|%-5s|%05d|%x|%o|%c|%%\n' ab cd 42 255 8 xyz; printf '%s %s\n' 1 2 3; printf '%b\n' 'a\tb'
printf '%d %s\n' 12abc x 2>/dev/null; echo $?; printf '%.2f\n' 2.345; printf '%3d.\n' 1 22 333
echo 'back\\slash' 'new\nline' "tab\tstop"; echo -n 'no newline'; echo
long=$(seq 1 3000 | tr '\n' ' '); echo ${#long}; set -- $long; echo $# ${3000}; echo "$long" | wc -c
big=x; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do big=$big$big; done; echo ${#big}; echo "$big" | wc -c
basename -a $(seq 1 10000) | tail -n 1; seq 1 10000 | xargs echo | wc -w
f() { echo "$#:$1:$2"; }; f "$@" | cut -c 1-10; f '' ''; f $empty; f "$empty"; f "a b" c
echo ~+ "~" a~b | cut -c 1-2; echo "#" no#comment # comment
: "${one:=x}" && echo "$one"; echo ${10-ten} "${@:-none}" | cut -c 1-20
echo "$name" | { read -r n; echo "${n%%o*}"; }; echo "${name}"_"${name}"
echo "status $?" $# "$-" | tr -d 'hils'
