# Here-documents and here-strings: expanded, quoted, with tabs, several at once, long ones.
name=world
cat <<END
hello $name $(echo cmd) \$name $((1 + 1)) "quoted" \
joined
END
cat <<'END'
hello $name $(echo cmd) \
END
cat <<-END
	stripped $name
		twice
	END
cat <<A - <<B
first
A
second
B
cat /dev/fd/3 /dev/fd/4 3<<A 4<<B
third
A
fourth
B
cat <<<"string $name"
while read -r line; do echo "[$line]"; done <<END
a b
  c  d

e\\f
END
f() { cat; echo "of f"; } <<END
to the function
END
f
f
big=$(seq 20000)
wc -c <<<"$big"
cat <<END | md5sum
$big
$big
END
tr a-z A-Z <<END && echo fine || echo no
lower
END
(cat; cat <<END) <<END2
inner
END
outer
END2
cat <<END 2>&1
unfinished $(
echo inside
)
END
dash -c 'cat <<X
from dash $0
X
read a b <<X
1 2 3
X
echo "$b/$a"'
