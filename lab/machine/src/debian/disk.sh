#!/bin/sh
# Makes a disk of Debian packages: unpacks them, does what their installation scripts would have
# done and the programs cannot do without, and puts all of it into an ext3 image.
#
#   disk.sh FOLDER IMAGE SIZE
#
# FOLDER is for intermediate files and holds `packages`, a list of package files. It is run by root
# or below fakeroot, so that owners come out right. The scripts of packages are not run.
set -eu
umask 022

folder=$1
image=$2
size=$3
root=$folder/root
info=$root/var/lib/dpkg/info

rm -rf "$root" "$folder/control"
mkdir -p "$root/usr"

# The merged /usr, before anything is unpacked. tar keeps the links where a package has a folder.
for name in bin sbin lib lib64; do
    mkdir "$root/usr/$name"
    ln -s "usr/$name" "$root/$name"
done

count=$(wc -l <"$folder/packages")
number=0
mkdir -p "$info" "$folder/control"
: >"$root/var/lib/dpkg/status"
while IFS= read -r package; do
    number=$((number + 1))
    base=${package##*/}
    echo "    $number of $count: ${base%%_*}" >&2
    dpkg-deb --fsys-tarfile "$package" >"$folder/files.tar"
    tar --extract --file "$folder/files.tar" --directory "$root" --keep-directory-symlink \
        --preserve-permissions --same-owner --numeric-owner
    dpkg-deb --control "$package" "$folder/control"
    name=$(dpkg-deb --field "$package" Package)
    # dpkg has the architecture in the names of what may be installed for several of them.
    if [ "$(dpkg-deb --field "$package" Multi-Arch)" = same ]; then
        name=$name:$(dpkg-deb --field "$package" Architecture)
    fi
    tar --list --file "$folder/files.tar" | sed -e 's,^\.,,' -e 's,^/$,/.,' -e 's,\(.\)/$,\1,' \
        >"$info/$name.list"
    for part in md5sums conffiles; do
        if [ -f "$folder/control/$part" ]; then
            cp "$folder/control/$part" "$info/$name.$part"
        fi
    done
    {
        sed -e '1a Status: install ok unpacked' "$folder/control/control"
        echo
    } >>"$root/var/lib/dpkg/status"
    rm -rf "$folder/control"
done <"$folder/packages"
rm -f "$folder/files.tar"

has() { [ -e "$root/$1" ] || [ -L "$root/$1" ]; }
# have_folder MODE GROUP NAME
have_folder() {
    mkdir -p "$root/$3"
    chown "0:$2" "$root/$3"
    chmod "$1" "$root/$3"
}
# have_file NAME MODE GROUP: its text comes from standard input, unless a package has brought it
have_file() {
    if has "$1"; then
        cat >/dev/null
    else
        mkdir -p "$(dirname "$root/$1")"
        cat >"$root/$1"
        chown "0:$3" "$root/$1"
        chmod "$2" "$root/$1"
    fi
}
# copy_default FROM TO
copy_default() {
    if has "$1" && ! has "$2"; then
        cp -p "$root/$1" "$root/$2"
    fi
}

# Users and groups: those that base-passwd has, and one without rights to try things as.
copy_default usr/share/base-passwd/passwd.master etc/passwd
copy_default usr/share/base-passwd/group.master etc/group
if has etc/passwd; then
    sed -i -e 's,^root:\*:,root:x:,' -e 's,^\([^:]*\):\*:,\1:x:,' "$root/etc/passwd"
    if ! grep -q '^user:' "$root/etc/passwd"; then
        echo 'user:x:1000:1000::/home/user:/bin/bash' >>"$root/etc/passwd"
        echo 'user:x:1000:' >>"$root/etc/group"
    fi
    sed -e 's,^\([^:]*\):.*,\1:*:19700:0:99999:7:::,' "$root/etc/passwd" |
        have_file etc/shadow 640 42
fi
have_folder 755 0 home/user
chown 1000:1000 "$root/home/user"
for name in .profile .bashrc .bash_logout; do
    if has "etc/skel/$name" && ! has "home/user/$name"; then
        cp -p "$root/etc/skel/$name" "$root/home/user/$name"
        chown 1000:1000 "$root/home/user/$name"
    fi
done

# What base-files and libc-bin keep as defaults.
copy_default usr/share/base-files/dot.profile root/.profile
copy_default usr/share/base-files/dot.bashrc root/.bashrc
copy_default usr/share/base-files/profile etc/profile
copy_default usr/share/base-files/motd etc/motd
copy_default usr/share/libc-bin/nsswitch.conf etc/nsswitch.conf
copy_default usr/share/debianutils/shells etc/shells
if has etc/dpkg/origins/debian && ! has etc/dpkg/origins/default; then
    ln -s debian "$root/etc/dpkg/origins/default"
fi
printf 'trefoil\n' | have_file etc/hostname 644 0
printf '127.0.0.1\tlocalhost\n127.0.1.1\ttrefoil\n' | have_file etc/hosts 644 0
printf '# The root is mounted by the kernel.\n' | have_file etc/fstab 644 0
has etc/mtab || ln -s ../proc/self/mounts "$root/etc/mtab"

for name in boot dev etc/opt home media mnt opt proc run srv sys usr/local usr/local/bin \
    usr/local/etc usr/local/lib usr/local/sbin usr/local/share usr/local/src var/cache var/lib \
    var/local var/log var/opt var/spool; do
    has "$name" || have_folder 755 0 "$name"
done
have_folder 1777 0 tmp
have_folder 1777 0 var/tmp
have_folder 1777 0 run/lock
have_folder 2775 8 var/mail
have_folder 700 0 root
has var/spool/mail || ln -s ../mail "$root/var/spool/mail"
for name in run lock; do
    if [ -d "$root/var/$name" ] && ! [ -L "$root/var/$name" ]; then
        rmdir "$root/var/$name"
    fi
done
has var/run || ln -s /run "$root/var/run"
has var/lock || ln -s /run/lock "$root/var/lock"

# Alternatives: NAME, PLACE and the programs that may be meant, best first.
while read -r name place programs; do
    for program in $programs; do
        if has "${program#/}" && ! has "${place#/}"; then
            mkdir -p "$root/etc/alternatives"
            ln -s "$program" "$root/etc/alternatives/$name"
            ln -s "/etc/alternatives/$name" "$root/$place"
        fi
    done
done <<'LIST'
awk /usr/bin/awk /usr/bin/gawk /usr/bin/mawk
nawk /usr/bin/nawk /usr/bin/gawk /usr/bin/mawk
pager /usr/bin/pager /usr/bin/less /usr/bin/more
editor /usr/bin/editor /usr/bin/nano /usr/bin/vim.basic /usr/bin/vim.tiny
vi /usr/bin/vi /usr/bin/vim.basic /usr/bin/vim.tiny
which /usr/bin/which /usr/bin/which.debianutils
nc /usr/bin/nc /usr/bin/nc.openbsd /usr/bin/nc.traditional
LIST

# Commands for the system below.
have_program() {
    cat >"$root/$1"
    chown 0:0 "$root/$1"
    chmod 755 "$root/$1"
}
have_program usr/bin/trefoil <<'PROGRAM'
#!/bin/sh
# Looks at the parts of the system, strikes and replaces them. The files that it uses are there
# where the manifest grants the personality `monitor`, `control` and `updater`, and root alone may
# write to them.
system=/sys/kernel/trefoil
usage() {
    cat <<'TEXT'
usage: trefoil domains              list the domains
       trefoil crash NAME...        have domains crash, and say how long each was away
       trefoil update NAME [FILE]   replace a domain, while it is used, by the image in FILE, or
                                    by the one of /sys/kernel/trefoil/updates that is for it
       trefoil calls                who called whom, how often and for how long
       trefoil calls on|timed|off|reset
                                    count calls from now on, time each of them, stop, begin anew
       trefoil log                  show the kernel's log
Drivers and file systems are restarted, and programs go on. `files` is a name for vfs. Try:
       md5sum /usr/bin/* | tail -1 & trefoil crash virtio-blk ext2 files; wait; trefoil log | tail
TEXT
}
wrong() {
    echo "trefoil: $1" >&2
    exit "${2:-1}"
}
has() { [ -e "$system/$1" ] || wrong "the manifest of this system does not grant that"; }
# The time in the last line of the log.
last() { tail -n 1 $system/log | sed 's/^\[ *\([0-9.]*\)\].*/\1/'; }
# away SINCE NAME...: a line for each domain that crashed after SINCE and serves again. The status
# is 0 if all of them do.
away() {
    awk -v since="$1" -v names="$2" '
        BEGIN { count = split(names, want, " ") }
        {
            time = $0
            sub(/^\[ */, "", time)
            time += 0
            rest = $0
            sub(/^\[[^]]*\] /, "", rest)
            for (i = 1; i <= count; i++) {
                name = want[i]
                if (time > since && !(name in down) && index(rest, name ": domain ") == 1 &&
                    rest ~ / crashed in /)
                    down[name] = time
                if ((name in down) && !(name in up) && time >= down[name] &&
                    index(rest, "init: " name ": instance ") == 1 && rest ~ / started in /)
                    up[name] = time
            }
        }
        END {
            for (i = 1; i <= count; i++) {
                name = want[i]
                if (name in up)
                    printf "%s crashed and was away for %.1f ms\n", name, (up[name] - down[name]) * 1000
                else {
                    missing = 1
                    if (name in down)
                        printf "%s crashed and is not back yet\n", name
                    else
                        printf "%s will crash in its next call\n", name
                }
            }
            exit missing
        }' $system/log
}
crash() {
    has strike
    since=$(last)
    names=
    for name in "$@"; do
        [ "$name" != files ] || name=vfs
        echo "$name" 2>/dev/null >$system/strike ||
            wrong "there is no domain $name; \`trefoil domains\` lists them"
        case " $names " in *" $name "*) ;; *) names="$names $name" ;; esac
    done
    # A write that reaches the disk is a call for each of them.
    probe=$(mktemp /tmp/trefoil.XXXXXX) && echo struck >"$probe" && sync
    rm -f "$probe"
    count=0
    until told=$(away "$since" "$names") || [ $count = 50 ]; do
        count=$((count + 1))
        sleep 0.1
    done
    echo "$told"
}
# replaced SINCE NAME: what the log says of an update after SINCE.
replaced() {
    awk -v since="$1" -v name="$2" '
        {
            time = $0
            sub(/^\[ */, "", time)
            rest = $0
            sub(/^\[[^]]*\] [^:]*: /, "", rest)
            if (time + 0 > since && (index(rest, name ": updated to image ") == 1 ||
                index(rest, name ": not updated to image ") == 1 ||
                index(rest, name " is not replaced: ") == 1))
                line = rest
        }
        END { print line }' $system/log
}
update() {
    has update
    name=$1
    [ "$name" != files ] || name=vfs
    file=${2-}
    if [ -z "$file" ]; then
        for file in $system/updates/$name-2 $system/updates/$name-shadow-2; do
            [ ! -e "$file" ] || break
        done
        [ -e "$file" ] || wrong "no image for $name came with the system; name a file"
    fi
    [ -r "$file" ] && [ -f "$file" ] || wrong "$file cannot be read"
    since=$(last)
    status=0
    # The domain, and the descriptor of the image.
    env printf '%s 3' "$name" 3<"$file" 2>/dev/null >$system/update || status=1
    told=$(replaced "$since" "$name")
    [ $status = 0 ] || wrong "${told:-$name is not replaced}"
    echo "$told"
}
command=${1-}
[ $# = 0 ] || shift
case $command in
domains | log)
    has $command
    exec cat $system/$command
    ;;
calls)
    has calls
    case ${1-} in
    '') exec cat $system/calls ;;
    on | timed | off | reset) echo "$1" >$system/counting ;;
    *) wrong "calls: on, timed, off or reset, and not $1" 2 ;;
    esac
    ;;
crash)
    if [ $# = 0 ]; then
        usage >&2
        exit 2
    fi
    crash "$@"
    ;;
update)
    if [ $# != 1 ] && [ $# != 2 ]; then
        usage >&2
        exit 2
    fi
    update "$@"
    ;;
'' | -h | --help | help) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
PROGRAM
have_program usr/sbin/poweroff <<'PROGRAM'
#!/bin/sh
# Brings all to the disk and switches the machine off.
echo off >/sys/kernel/trefoil/power
PROGRAM

# Without it the dynamic linker searches its default folders alone. With -r it needs no root.
ldconfig -r "$root"

rm -f "$image"
mke2fs -q -F -t ext3 -I 256 -b 4096 -J size=16 -L trefoil-debian -d "$root" "$image" "$size"
rm -rf "$root"
