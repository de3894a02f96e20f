# Working directories: cd -P and -L, links, `..` behind links, removed ones, pushd.
mkdir -p real/deep/er other
ln -s real/deep link
ln -s ../other real/deep/side
ln -s "$PWD/real" absolute
base=$PWD
here() { local p; p=$(pwd); echo "${p#"$base"} $(pwd -P | sed "s,^$base,,")"; }
cd link
here
cd ..
here
cd -P link
here
cd ..
here
cd "$base"
cd link/er
here
cd ../..
here
cd "$base/absolute/deep"
here
ls ..
ls -d ../..//./real
cd "$base"
ls link/..
echo x >real/deep/../in-real
echo x >link/../by-link
ls real
cat absolute/deep/../in-real
ls real/deep/side
touch real/deep/side/../made
ls
cd link
/bin/pwd | sed "s,^$base,,"
env PWD=/nowhere /bin/pwd | sed "s,^$base,,"
cd - >/dev/null
cd nowhere
echo $?
cd real/in-real
echo $?
cd ''
echo "$? ${PWD#"$base"}"
pushd real >/dev/null
pushd deep >/dev/null
dirs | wc -w
popd >/dev/null
popd >/dev/null
here
mkdir gone
cd gone
rmdir ../gone
ls
/bin/pwd 2>&1
touch x
cd .. 2>&1 && echo back
cd "$base"
mkdir -p a/b/c
cd a/b/c
mv "$base/a" "$base/z"
/bin/pwd | sed "s,^$base,,"
ls ../..
cd ..
/bin/pwd | sed "s,^$base,,"
cd "$base"
(cd / && cd .. && pwd)
CDPATH=$base/z cd b >/dev/null
here
readlink -f "$base/link/side/../real/./deep" | sed "s,^$base,,"
realpath --relative-to="$base/other" "$base/link" 
realpath -e missing
echo $?
realpath -m missing/../x | sed "s,^$base,,"
ln -s loop1 loop2
ln -s loop2 loop1
cat loop1
ls -L loop1
readlink -f loop1
echo $?
