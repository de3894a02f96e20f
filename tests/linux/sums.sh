# Sums and codes: cksum, sum, md5 to sha512, b2sum, base64, base32, od, hex.
seq 1000 >f
: >empty
printf '\0\1\2\377\200' >bin
for s in cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum; do
    echo $s
    $s f empty bin
done
b2sum -l 128 f
cksum -a crc f
cksum -a sha256 f
md5sum f empty >sums
md5sum -c sums
echo x >>empty
md5sum -c sums
echo $?
md5sum --tag f
md5sum -c missing
echo $?
sha256sum --quiet -c <(sha256sum f) && echo right
base64 bin
base64 f | head -n 2
base64 -w 20 bin
base64 f | base64 -d | cmp - f && echo same
echo 'not base64!' | base64 -d
echo $?
base32 bin
base32 bin | base32 -d | od -An -tx1
basenc --base16 bin
basenc --base64url bin
od bin
od -An -tx1z bin
od -A x -t x1 f | head -n 2
od -c bin
od -t d2 -N 4 f
od -j 2 -An -td1 bin
hexdump -C bin
head -c 100000 /dev/zero | md5sum
yes | head -c 1234567 | sha1sum
cat /usr/bin/bash | wc -c | awk '{ print ($1 > 1000000) }'
cmp f empty
echo $?
cmp -l bin <(printf '\0\1\3\377\200')
cmp -s f f && echo equal
xxd -v >/dev/null 2>&1
echo $?
