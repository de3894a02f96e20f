# test and [[ ]] about files: kinds, rights, times, sameness.
echo data >f
: >empty
mkdir d
ln -s f link
ln -s nowhere broken
ln f hard
mkfifo p
chmod 640 f
chmod 755 empty
chmod 1777 d
chmod g+s d
chmod u+s empty
t() { if test "$@"; then echo "yes $*"; else echo "no  $*"; fi; }
for o in -e -f -d -h -L -p -S -b -c -r -w -x -s -u -g -k -O -G; do
    for x in f empty d link broken hard p missing; do t $o $x; done
done
t /dev/null -ef /dev/null
t -c /dev/null
t -b /dev/null
t f -ef hard
t f -ef link
t f -ef empty
touch -d '2001-01-01' old
touch -d '2002-02-02' new
t -N old
touch -a -d '2000-01-01' old
t -N old
t new -nt old
t new -ot old
t old -ot missing
t missing -nt old
t f/ -ef f
t -d d/
t -d link/
t -e broken
t -e ''
t -f /etc/passwd -a -r /etc/passwd
t ! -e missing
[[ -v HOME && -o errexit ]] || echo neither
stat -c '%n %F %a %U:%G %h %s' f empty d link broken hard p | sed 's/^d \(.*\) 4096$/d \1 N/'
stat -L -c '%n %F' link
stat -c %n broken missing
echo $?
