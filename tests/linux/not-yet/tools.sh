# More tools: tee, csplit, printf, date, sleep, nproc, stdbuf, chroot, sync, mountpoint, misc.
echo a | tee -a t t2 && echo b | tee -a t >/dev/null && cat t t2
stdbuf -oL seq 2
stdbuf -o0 echo x
env --default-signal sh -c 'echo ok'
chroot / /bin/echo in the root
chroot /nowhere /bin/echo x
echo $?
dircolors -b | head -c 9
echo
users </dev/null
echo $?
mountpoint -q / && echo root is a mount
df --output=target / | tail -n 1
df -h /nosuch
echo $?
du -s --apparent-size -b t
mkdir -p du/x
head -c 10000 /dev/zero >du/x/f
du --apparent-size -b du/x/f
du -a du | wc -l
seq 5 | tee >(cat >/dev/null) | tail -n 1
uname
date -u -d '2000-01-01 12:34:56' '+%Y %B %d %I %p %U %u %y'
date -u -d 'yesterday 2000-01-01' 2>/dev/null | wc -l
date -d nonsense
echo $?
cal 2 2024 2>/dev/null | head -n 1
logger x 2>/dev/null
printf '%s\n' a b c | head -n 2 | tail -n 1
ls --version | head -n 1
bash --version | head -n 1
runcon x 2>&1 | head -n 1
vdir -d . | cut -c1-10
dir
ls -a
ls -p
ls -m
ls -1S du/x t
mkdir -p sz && for n in 10 200 3000; do head -c $n /dev/zero >sz/$n; done
ls -s --block-size=1 -1 sz | head -n 1 | cut -d' ' -f1
ls -lS sz | awk 'NR > 1 { print $5, $NF }'
ls -1X sz
ls -1t t t2 | wc -l
ls -i t | awk '{ print ($1 > 0) }'
ls -R du
ls -ld --time-style=+%Y -- . | awk '{ print NF }'
ls --sort=none -U sz | wc -l
ls -Q t
ls nosuch
echo $?
stat -f -c %T / | wc -l
stat --printf='%n\t%s\n' t
readlink t
echo $?
test "$(nproc)" -ge 1 && echo processors
sh -c 'echo $PPID' | grep -c '^[0-9]*$'
flock -n t echo locked 2>&1
more t </dev/null
less t </dev/null | cat
rename --version 2>/dev/null | wc -l
hostid | wc -c
mesg </dev/null 2>&1 | wc -l
lsblk >/dev/null 2>&1
getopt -o ab: --long long -- -a -b x --long y
script=1
echo "${script}" | tr 1 2
column -s: -t <<<'a:b:c'
hexdump -n 4 -e '4/1 "%02x" "\n"' t
rev <<<abc
