# perl: text, files, processes, sorting, packing, locks it can do without.
perl -e 'print "hello\n"; print join(",", map { $_ ** 2 } grep { $_ % 2 } 1 .. 9), "\n"'
printf 'b 2\na 1\n' | perl -lane 'print "$F[1] $F[0]"'
printf 'one\ntwo\n' | perl -pe 's/(\w+)/\U$1/; $_ .= "$.\n"'
echo text >f
perl -i.bak -pe 's/t/T/g' f
cat f f.bak
perl -0777 -ne 'print length, "\n"' f
perl -MPOSIX -e 'print floor(-3.5), " ", strftime("%F %T", gmtime 86399), "\n"'
perl -MList::Util=sum,max,shuffle -e 'print sum(1 .. 100), " ", max(3, 9, 2), "\n"'
perl -e 'my %h = map { $_ => length } qw(apple fig banana); print "$_=$h{$_}\n" for sort { $h{$a} <=> $h{$b} } keys %h'
perl -e 'open my $f, ">", "out" or die; print $f "line $_\n" for 1 .. 3; close $f; open $f, "<", "out"; my @l = <$f>; print scalar(@l), $l[1]'
perl -e 'open my $f, "+<", "out"; seek $f, 5, 0; print $f "X"; seek $f, 0, 0; print <$f>; print tell($f), "\n"; truncate $f, 7; print -s "out", "\n"'
perl -e 'open F, "<", "missing" or print "$!\n"; print $!{ENOENT} ? "ENOENT\n" : "other\n"'
perl -e 'mkdir "d" or die; mkdir "d" or print "$!\n"; rmdir "d"; rmdir "d" or print "$!\n"'
perl -e 'opendir my $d, "."; print join(" ", sort grep !/^\./, readdir $d), "\n"'
perl -e 'print `echo from backticks`; print $? >> 8, "\n"; system "exit 3"; print $? >> 8, "\n"; system "kill -9 \$\$"; print $? & 127, "\n"'
perl -e 'my $r = system "nosuchprogram"; print "$r $!\n"'
perl -e 'print unpack("H*", pack("NnC", 0xdeadbeef, 0x1234, 7)), "\n"; print join(",", unpack("(A2)*", "aabbcc")), "\n"'
perl -e '$_ = "x" x 100000; print length, " ", tr/x//, "\n"'
perl -e 'my @a = map { ($_ * 7919) % 100003 } 1 .. 50000; my @s = sort { $a <=> $b } @a; print "$s[0] $s[-1]\n"'
perl -e 'eval { die "caught\n" }; print $@; eval { my $x = 1 / 0 }; print $@'
perl -e 'exit 7'
echo $?
perl -e 'die "dead\n"'
echo $?
perl -e 'kill TERM => $$; sleep 5'
echo $?
perl -e 'print "$ENV{LC_ALL} @ARGV\n"' a b
perl -e 'my @s = stat "f"; printf "%o %d %d\n", $s[2], $s[3], $s[7]'
perl -e 'chmod 0600, "f"; printf "%o\n", (stat "f")[2] & 07777; utime 1, 2, "f"; print join(",", (stat "f")[8, 9]), "\n"'
perl -e 'symlink "f", "l"; print readlink("l"), " ", -l "l" ? 1 : 0, "\n"; rename "l", "m"; print -e "l" ? 1 : 0, "\n"; print unlink("m", "none"), "\n"'
perl -e 'pipe R, W; my $p = fork; if (!$p) { close R; print W "x" x 200000; exit } close W; local $/; my $d = <R>; waitpid $p, 0; print length $d, "\n"'
perl -e 'my $n = select undef, undef, undef, 0.1; print "$n\n"; vec(my $r = "", 0, 1) = 1; print select($r, undef, undef, 0), "\n"' </dev/null
perl -MSocket -e 'print "Socket\n"' 2>/dev/null
perl -MFcntl=:mode -e 'print S_ISDIR((stat "/")[2]) ? "dir\n" : "no\n"'
perl -e 'sysopen my $f, "x", 0x41 | 0x80 or print "no\n"; sysopen $f, "x", 0xc1 or print "$!\n"; print syswrite($f, "abc") // $!, "\n"' 2>&1
perl -e 'open my $f, "<", "/" or print "$!\n"; print defined(sysread $f, my $b, 10) ? "read" : "$!", "\n"'
perl -e 'for my $n (1 .. 200) { open my $f, ">", "many$n"; print $f $n } my @f = glob "many*"; print scalar(@f), "\n"; unlink @f'
perl -e 'exec "echo", "by", "exec" or die'
perl -e '$0 = "renamed"; open my $f, "<", "/proc/self/comm"; print <$f>'
