# Links, hard and symbolic; rename of what is open; removal of what is open.
echo one >a
ln a b
stat -c %h a b
echo two >>b
cat a
rm a
stat -c %h b
cat b
ln -s b s
ln -s s t
cat t
readlink t
readlink -f t | sed "s,.*/,,"
ln -sf c s
readlink s
ln s x
echo $?
stat -c %F x
ln -L t y
echo $?
ln b .
echo $?
ln missing z
echo $?
mkdir d
ln d e
echo $?
ln -s d e
echo in >e/f
ls d
rmdir e
echo $?
rm e/
echo $?
rm e
ls -F
ln -sfn d n
ln -sfn other n
readlink n
ln -s "$(printf 'x%.0s' $(seq 255))" long
readlink long | wc -c
ln -s x "$(printf 'x%.0s' $(seq 256))"
echo $?
ln -s '' empty
echo $?
exec 3>open
echo first >&3
mv open moved
echo second >&3
cat moved
exec 4<moved
rm moved
echo third >&3
cat <&4
exec 3>&- 4<&-
echo 1 >p
echo 2 >q
exec 5<q
mv p q
cat <&5 q
exec 5<&-
mv q q
echo $?
mv -n d b 2>/dev/null
ls d
echo n >new
echo o >old
mv -n new old
cat old
mv -b new old
ls
mv old missing/x
echo $?
mv d d/sub
echo $?
mkdir d2
mv d2 b
echo $?
mv b d2
ls d2
mv -T d2 d
echo $?
rm d/f
mv -T d2 d
ls d
touch -- -dash
rm -- -dash
rm -r d missing
echo $?
rm -f missing
echo $?
cp -l old~ hardlink
stat -c %h old~
cp -s old~ softlink
readlink softlink
link old~ third
unlink third
unlink .
echo $?
