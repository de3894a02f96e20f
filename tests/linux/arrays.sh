# bash's arrays, indexed and associative, and what is expanded from them.
a=(one two "three four" five)
echo "${#a[@]} ${a[2]} ${a[-1]} ${!a[*]}"
printf '<%s>' "${a[@]:1:2}" && echo
a[9]=ten
unset 'a[1]'
a+=(more)
declare -p a
for x in "${a[@]^^}"; do echo "$x"; done
echo "${a[@]/o/0}" "${a[*]#t}" "${a[@]%e}"
declare -A m=([red]=1 [green]=2 ["a b"]=3)
m[blue]=4
for key in "${!m[@]}"; do echo "$key=${m[$key]}"; done | sort
echo "${#m[@]} ${m[none]-unset} ${m[a b]}"
unset 'm[red]'
[[ -v m[red] ]] || echo gone
mapfile -t lines < <(printf 'x\ny y\n\nz\n')
echo "${#lines[@]}:${lines[1]}:${lines[3]}"
IFS=, read -r -a parts <<<"a,b,,d"
declare -p parts
IFS=-
echo "${parts[*]}"
unset IFS
readarray -n 2 -s 1 some < <(seq 10)
printf '%s' "${some[@]}"
f() { local -n ref=$1; ref+=(pushed); }
f parts
echo "${parts[-1]}"
set -- "${a[@]}"
echo $# "$3"
shift 2
echo "$@"
