# Modes, umask, owners and times, as root sees them.
umask
umask 027
umask -S
touch f
mkdir d
stat -c '%n %a' f d
umask 0
touch g
mkdir e
stat -c '%n %a' g e
umask u=rwx,g=rx,o=
mkfifo p
stat -c %a p
umask 022
for m in 644 u+x g-r o=w a+X +t u+s,g+s =rwx ug=o 4755 1777 go-w u=g 0; do
    chmod $m f 2>/dev/null
    echo "$m $(stat -c '%a %A' f)"
done
chmod 755 d
chmod -R g+w d
chmod --reference=d f
stat -c %a f
chmod 999 f
echo $?
chmod 644 missing
echo $?
chown 1000:1000 f
stat -c '%U %G %u %g' f
chown user g
chgrp daemon g
stat -c '%U:%G' g
chown -h 1:2 p
chown 12345:54321 p
stat -c '%u:%g' p
chown nosuchuser f
echo $?
chmod 6755 f
chown 0:0 f
stat -c %a f
chmod 2775 d
chgrp 1000 d
touch d/inherits
mkdir d/sub
stat -c '%n %g %a' d/inherits d/sub
touch -d '2001-02-03 04:05:06' f
stat -c '%y %x' f
touch -m -d '@1000000000' f
stat -c '%Y %X' f
touch -a -t 199912312359.58 f
stat -c '%y %x' f
touch -r f g
stat -c %Y g
touch -c none
ls none
touch -d 'not a date' f
echo $?
touch -d '1970-01-01 00:00:00' f
stat -c %Y f
date -r f -u +%F
date -u -d @86400 '+%F %T %a %j %s'
date -u -d '2024-02-28 + 2 days' +%F
TZ=Europe/Berlin date -d '@0' '+%H:%M' 2>/dev/null | wc -l
id -u
id -un
id -gn
whoami
groups root
logname 2>&1
echo $?
id nosuch
echo $?
ls -ln f | cut -d' ' -f1-4
ls -l d | sed 's/  */ /g' | cut -d' ' -f1-4
ulimit -n
ulimit -S -n 64
ulimit -n
sh -c 'ulimit -n'
ulimit -c
ulimit -f unlimited && ulimit -f
bash -c 'ulimit -S -n 6; exec 3<f 4<f 5<f 6<f; echo never' 2>&1 | sed 's/^[^:]*: //'
