#!/bin/sh
# Runs the scripts that /linux/list names, each in an empty folder of its own, and prints what they
# print between two marks. Both kernels run this file.
echo "== kernel $(uname -r) $(uname -v)"
for name in $(cat /linux/list); do
    cd /
    rm -rf /tmp/work
    mkdir /tmp/work
    cd /tmp/work || exit 2
    umask 022
    timeout -s KILL "$(cat /linux/limit)" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TZ=UTC0 TERM=dumb \
        bash "/linux/$name.sh" >/tmp/output 2>&1 </dev/null
    status=$?
    echo "== begin $name"
    cat /tmp/output
    echo "== $name ends with $status"
done
