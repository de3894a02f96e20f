# What a program finds at its start: environment, arguments, descriptors, limits of arguments.
env | grep -v -e '^_=' -e '^SHLVL=' -e '^PWD=' -e '^OLDPWD=' | sort
A=1 B='two words' env | grep -e '^[AB]=' | sort
env -i X=1 /usr/bin/env
env -u HOME sh -c 'echo "[${HOME-unset}]"'
export E=exported
sh -c 'echo $E'
bash -c 'echo "$0 $# $*"' zero one 'two 2' ''
bash -c 'printf "<%s>" "$@"; echo' _ a '' 'b c' $'new\nline'
tr '\0' '\n' </proc/self/cmdline
cat /proc/self/environ | tr '\0' '\n' | grep ^E=
cat /proc/self/comm
readlink /proc/self/exe
(exec -a other bash -c 'echo $0')
(exec -c env) | grep -c .
printf '#!/bin/sh\necho script "$@"\n' >s
chmod +x s
./s a 'b c'
printf '#!/usr/bin/env bash\necho "$BASH_VERSINFO"\n' >e
chmod +x e
./e
printf '#!/bin/echo -x  y\n' >o
chmod +x o
./o arg
printf '#! /bin/cat\nitself\n' >c
chmod +x c
./c
printf '#!/nowhere/sh\n' >n
chmod +x n
./n
echo $?
printf '#!./s\nnested\n' >i
chmod +x i
./i z
printf 'echo no interpreter $1\n' >p
chmod +x p
./p q
chmod -x p
./p
echo $?
ls -d . >/dev/null && sh -c 'ls /proc/self/fd | wc -l'
exec 9<s
sh -c 'read -r l <&9; echo "$l"'
exec 9<&-
x=$(printf 'x%.0s' $(seq 100000))
env X="$x" sh -c 'echo ${#X}'
echo ${#x}
/bin/echo "$x" | wc -c
/bin/echo "$x$x" 2>&1 | tail -c 24
echo ${PIPESTATUS[0]}
/bin/echo $(seq 60000) | wc -w
getconf ARG_MAX
getconf PAGE_SIZE
getconf PATH
uname -s -m -o
hostname
arch
nproc --all | grep -c '[1-9]'
pwd | wc -l
which ls cat nosuch
echo $?
hash -r
type -t cd ls if nosuch
printenv HOME NOSUCH
echo $?
true; false; echo $?
sleep 0.01 0.01 && echo slept
