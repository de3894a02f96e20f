//! Scripts and what dash 0.5.12 prints for them and ends with: ours must do the same. Where a dash
//! is installed it is asked again, so that the table cannot drift from the truth.

mod common;

use std::process::Command;

/// A script, what it prints, and its status.
const SCRIPTS: &[(&str, &str, i32)] = &[
    (
        r#"echo $((1+2*3)) $(( (1+2)*3 )) $((7%4)) $((-7/2)) $((1<<4))"#,
        "7 9 3 -3 16\n",
        0,
    ),
    (
        r#"x=5; echo $((x+1)) $(($x*2)) $((x+=3)) $x; echo $((x>7 ? 1 : 2))"#,
        "6 10 8 8\n1\n",
        0,
    ),
    (
        r#"i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo -n "$i "; done; echo"#,
        "1 2 3 \n",
        0,
    ),
    (
        r#"x=abcabc; echo ${x#a} ${x#*b} ${x##*b} ${x%c} ${x%b*} ${x%%b*} ${#x}"#,
        "bcabc cabc c abcab abca a 6\n",
        0,
    ),
    (
        r#"f=/usr/lib/x.tar.gz; echo ${f##*/} ${f%/*} ${f%.*} ${f%%.*} ${f#*.}"#,
        "x.tar.gz /usr/lib /usr/lib/x.tar /usr/lib/x tar.gz\n",
        0,
    ),
    (
        r#"p='*'; x='a*b*c'; echo ${x#*"$p"} ${x##*\*} "${x%"*"*}""#,
        "b*c c a*b\n",
        0,
    ),
    (
        r#"unset u; echo ${u:-a} ${u-b} "${u:-c d}" ${u:+e} "${u:+f}"x; echo ${u:=g} $u"#,
        "a b c d x\ng g\n",
        0,
    ),
    (r#"e=; echo ${e:-a} "${e-b}" ${e:+c} "${e+d}""#, "a  d\n", 0),
    (
        r#"echo "${u:-'q'}" ${u:-'q'} "${u:-"q r"}" ${u:-q   r}"#,
        "'q' q q r q r\n",
        0,
    ),
    (
        r#"set -- a 'b c' d; echo $# "$2"; for i in "$@"; do echo "<$i>"; done; for i in $*; do echo "<$i>"; done; echo "$*""#,
        "3 b c\n<a>\n<b c>\n<d>\n<a>\n<b>\n<c>\n<d>\na b c d\n",
        0,
    ),
    (
        r#"IFS=:; set -- a b c; echo "$*"; x=1:2:3; for i in $x; do echo $i; done; echo "$x""#,
        "a:b:c\n1\n2\n3\n1:2:3\n",
        0,
    ),
    (
        r#"set --; for i in "$@"; do echo no; done; echo $#; for i in x"$@"y; do echo $i; done"#,
        "0\nxy\n",
        0,
    ),
    (
        r#"set -- 1 2 3 4 5 6 7 8 9 10 11; echo $10 ${10} ${11}; shift 3; echo $1 $#"#,
        "10 10 11\n4 8\n",
        0,
    ),
    (
        r#"f() { echo "$1-$#"; return 3; }; f a b; echo $?; f; echo $?"#,
        "a-2\n3\n-0\n3\n",
        0,
    ),
    (
        r#"x=g; f() { local x=l y; y=2; echo $x$y; g; }; g() { echo in $x; x=changed; }; f; echo $x ${y-unset}"#,
        "l2\nin l\ng unset\n",
        0,
    ),
    (
        r#"f() { if [ $1 -le 1 ]; then echo 1; else echo $(($1 * $(f $(($1-1))))); fi; }; f 5"#,
        "120\n",
        0,
    ),
    (r#"f() (cd /; x=2; exit 4); x=1; f; echo $? $x"#, "4 1\n", 0),
    (
        r#"case abc in a*) echo 1;; *) echo 2;; esac; case x in a|x) echo 3;; esac; case y in (z) echo 4;; esac; echo $?"#,
        "1\n3\n0\n",
        0,
    ),
    (
        r#"case "a b" in "a b") echo q;; esac; x='*'; case foo in "$x") echo lit;; $x) echo pat;; esac"#,
        "q\npat\n",
        0,
    ),
    (
        r#"for w in apple 42 X_1 ''; do case $w in [0-9]*) echo num;; [a-z]*) echo low;; [!a-z]*) echo oth;; '') echo empty;; esac; done"#,
        "low\nnum\noth\nempty\n",
        0,
    ),
    (
        r#"case x in x) ;; esac; echo $?; false; case a in b) ;; esac; echo $?"#,
        "0\n0\n",
        0,
    ),
    (
        r#"for w in 5 a _ ' '; do case $w in [[:digit:]]) echo d;; [[:alpha:]]) echo a;; [[:space:]]) echo s;; *) echo o;; esac; done"#,
        "d\na\no\ns\n",
        0,
    ),
    (
        r#"set -e; false || echo ok; if false; then :; fi; ! true; echo on; false; echo no"#,
        "ok\non\n",
        1,
    ),
    (
        r#"set -e; f() { false; echo in; }; f || echo or; (exit 3); echo no"#,
        "in\n",
        3,
    ),
    (
        r#"set -u; echo ${x-ok}; (echo $nope) 2>/dev/null; echo $?"#,
        "ok\n2\n",
        0,
    ),
    (
        r#"(echo ${x?no}) 2>/dev/null; echo $?; x=1; echo ${x?no}"#,
        "2\n1\n",
        0,
    ),
    (
        r#"true && false || echo a; false && true; echo $?; true || echo no; ! false && echo b"#,
        "a\n1\nb\n",
        0,
    ),
    (
        r#"{ echo a; echo b; }; (echo c; exit 5); echo $?"#,
        "a\nb\nc\n5\n",
        0,
    ),
    (
        r#"for i in 1 2 3; do for j in a b c; do [ $j = b ] && continue 2; [ $i = 3 ] && break 2; echo $i$j; done; done"#,
        "1a\n2a\n",
        0,
    ),
    (
        r#"i=0; until [ $i -ge 2 ]; do i=$((i+1)); echo u$i; done; while :; do break; done; echo $?"#,
        "u1\nu2\n0\n",
        0,
    ),
    (
        r#"echo 'a\tb'; echo "x\\ny"; echo -n a; echo b; echo a\\b"#,
        "a\tb\nx\ny\nab\na\n",
        0,
    ),
    (
        r#"printf '%s %d %5.2f|%-5s|%05d|%x\n' a 5 3.14159 ab 42 255; printf '%s\n' a b c; printf 'a\tb\n'"#,
        "a 5  3.14|ab   |00042|ff\na\nb\nc\na\tb\n",
        0,
    ),
    (
        r#"printf '%d\n' abc 2>/dev/null; echo $?; printf '%b|%c\n' 'x\ty' hello"#,
        "0\n1\nx\ty|h\n",
        0,
    ),
    (
        r#"x=1; x=2 y=$x; echo $x$y; x=$(echo a; exit 3); echo $? $x; x=`echo b`; echo $x"#,
        "22\n3 a\nb\n",
        0,
    ),
    (
        r#"echo "a $(echo "b $(echo "c  d")")" `echo \`echo e\`` "$(echo '"')""#,
        "a b c  d e \"\n",
        0,
    ),
    (
        r#"x=$(printf 'a\n\n\n'); echo "[$x]"; echo "$(printf 'a\nb\n')""#,
        "[a]\na\nb\n",
        0,
    ),
    (
        r#"cat_() { while read -r l; do echo "$l"; done; }; cat_ <<E
$((1+1)) $(echo s) ${x:-d} \$x \\ 'q' "dq" `echo bq`
a\
b
E"#,
        "2 s d $x \\ 'q' \"dq\" bq\nab\n",
        0,
    ),
    (
        r#"f() { while IFS= read -r l; do echo "[$l]"; done; }; f <<'E'
  $x `no` \n
E"#,
        "[  $x `no` \n]\n",
        0,
    ),
    (
        r#"f() { while read l; do echo "[$l]"; done; }; f <<-E
	tab
		two
	E"#,
        "[tab]\n[two]\n",
        0,
    ),
    (
        r#"read a b <<E
 one  two three 
E
echo "$a|$b""#,
        "one|two three\n",
        0,
    ),
    (
        r#"IFS=: read a b c <<E
x:y:z:w
E
echo "$a|$b|$c"; IFS=, read a b <<E
1,
E
echo "$a|$b|""#,
        "x|y|z:w\n1||\n",
        0,
    ),
    (
        r#"read -r a <<'E'
a\b\
E
echo "$a"; read a <<'E'
a\b\
c
E
echo "$a""#,
        "a\\\nabc\n",
        0,
    ),
    (
        r#"eval 'x=1; echo $x'; eval "echo \$x"; cmd='echo a  b'; $cmd; eval "$cmd""#,
        "1\n1\na b\na b\n",
        0,
    ),
    (r#"trap 'echo bye' EXIT; echo hi; exit 3"#, "hi\nbye\n", 3),
    (r#"trap 'echo bye $?' EXIT; (exit 4)"#, "bye 4\n", 4),
    (
        r#"x=5; unset x; echo ${x-gone}; readonly r=1; echo $r; (r=2) 2>/dev/null; echo $?"#,
        "gone\n1\n2\n",
        0,
    ),
    (
        r#"test 3 -gt 2 -a a = a && echo 1; [ ! -e /nonexistent ] && echo 2; [ "" -o x ]; echo $?; [ \( a = b \) -o c = c ]; echo $?"#,
        "1\n2\n0\n0\n",
        0,
    ),
    (
        r#"[ a = ]; echo $?; [ = ]; echo $?; [ ! ]; echo $?; [ -n ]; echo $?; [ ]; echo $?; [ ! a = b ]; echo $?"#,
        "2\n0\n0\n0\n1\n0\n",
        0,
    ),
    (r#"[ abc -eq 1 ] 2>/dev/null; echo $?"#, "2\n", 0),
    (
        r#"while getopts ab:c o -a -b val -cx arg 2>/dev/null; do echo "$o ${OPTARG-none}"; done; echo $OPTIND"#,
        "a \nb val\nc \n? none\n5\n",
        0,
    ),
    (
        r#"set -- -ab val rest; while getopts ab: o; do echo $o $OPTARG; done; shift $((OPTIND-1)); echo $*"#,
        "a\nb val\nrest\n",
        0,
    ),
    (
        r#"set -- -x; while getopts :a o; do echo "$o $OPTARG"; done; set -- -a; OPTIND=1; while getopts :a: o; do echo "$o $OPTARG"; done"#,
        "? x\n: a\n",
        0,
    ),
    (
        r#"f() { echo f; }; unset -f f; f 2>/dev/null; echo $?; command -v cd; type cd"#,
        "127\ncd\ncd is a shell builtin\n",
        0,
    ),
    (
        r#"nonexistent_cmd_x 2>/dev/null; echo $?; /nonexistent/x 2>/dev/null; echo $?; / 2>/dev/null; echo $?"#,
        "127\n127\n126\n",
        0,
    ),
    (
        r#"echo $(( 0x10 + 010 )) $((~5 & 0xff)) $((!3)) $((3 == 3 && 2 != 1)) $((5 ^ 3 | 8))"#,
        "24 250 0 1 14\n",
        0,
    ),
    (
        r##"echo a{b,c} "#"x#y ~nosuch 'it'"'"'s' a"b"c\ d"##,
        "a{b,c} #x#y ~nosuch it's abc d\n",
        0,
    ),
    (
        r#"HOME=/h; echo ~ ~/x "~" a~ ; x=~/y; echo $x"#,
        "/h /h/x ~ a~\n/h/y\n",
        0,
    ),
    (
        r#"echo "\$x \`a\` \"q\" \a \\" 'a\b'"#,
        "$x `a` \"q\"  \\ a\n",
        0,
    ),
    (
        r#"x='a b'; y=$x; echo "$y"; for i in $x"c d"$x; do echo "<$i>"; done"#,
        "a b\n<a>\n<bc da>\n<b>\n",
        0,
    ),
    (
        r#"x="  a  b  "; echo $x; echo "$x"; set -- $x; echo $#"#,
        "a b\n  a  b  \n2\n",
        0,
    ),
    (r#"echo ${#} ${#@}; x=héé; echo ${x%é}"#, "0 0\nhé\n", 0),
    (
        r#"false; echo $?; x=; false; x=1; echo $?; echo $(false; echo $?) $?"#,
        "1\n0\n1 0\n",
        0,
    ),
    (
        r#"if false; then echo a; elif true; then echo b; else echo c; fi; if false; then :; fi; echo $?"#,
        "b\n0\n",
        0,
    ),
    (
        r#"i=1; while [ $i -le 3 ]; do case $i in 2) i=$((i+1)); continue;; esac; echo $i; i=$((i+1)); done"#,
        "1\n3\n",
        0,
    ),
    (
        r#"(x=1; (x=2; echo $x); echo $x); echo ${x-none}"#,
        "2\n1\nnone\n",
        0,
    ),
    (
        r#"f() { for a; do echo $a; done; set -- n1 n2; echo $1; }; set -- o1; f i1 i2; echo $1"#,
        "i1\ni2\nn1\no1\n",
        0,
    ),
    (
        r#"f() { return; }; false; f; echo $?; g() { false; return; }; g; echo $?"#,
        "1\n1\n",
        0,
    ),
    (
        r#"{ echo out; echo err >&2; } 2>/dev/null; (echo x; echo y >&2) 2>&1; { echo z >&3; } 3>&1"#,
        "out\nx\ny\nz\n",
        0,
    ),
    (
        r#"exec 3>&1; echo to3 >&3; exec 3>&-; echo x >&3 2>/dev/null; echo $?"#,
        "to3\n2\n",
        0,
    ),
    (
        r#"set -- a b; eval echo \$$#; eval "set -- 'x y' z"; echo "$1""#,
        "b\nx y\n",
        0,
    ),
    (
        r#"x=1 eval 'echo $x'; echo ${x-none}; f() { echo $x; }; x=2 f"#,
        "1\n1\n2\n",
        0,
    ),
    (
        r#": ${d:=dflt}; echo $d; set -f; echo *; set +f; echo $-"#,
        "dflt\n*\n\n",
        0,
    ),
    (r#"echo start; exit 7; echo no"#, "start\n", 7),
    (r#". /nonexistent/file 2>/dev/null; echo no"#, "", 2),
    (r#"echo ok; if true; then echo "unclosed; fi"#, "", 2),
    (r#"echo a; ) ; echo b"#, "", 2),
    (r#"shift 5 2>/dev/null; echo no"#, "", 2),
    (
        r#"echo one; cd /nonexistent/dir 2>/dev/null; echo $?; cd /; pwd; cd - >/dev/null 2>&1; echo $?"#,
        "one\n2\n/\n0\n",
        0,
    ),
    (
        r#"a=1; a=$a$a b=$a; echo $a $b; c=${a:+${b}x}; echo $c"#,
        "11 11\n11x\n",
        0,
    ),
    (
        r#"set -- "a  b" c; IFS=; echo $* "$*" $@"#,
        "a  b c a  bc a  b c\n",
        0,
    ),
    (
        r#"x=a.b.c; IFS=.; set -- $x; echo $1 $3 $#; IFS=' '; echo $x"#,
        "a c 3\na.b.c\n",
        0,
    ),
    (
        r#"n=3; s=; while [ $n -gt 0 ]; do s="$s$n"; n=$((n - 1)); done; echo $s"#,
        "321\n",
        0,
    ),
    (
        r#"echo "$(case a in a) echo yes;; esac)" $(echo \) ) "$(echo ")")""#,
        "yes ) )\n",
        0,
    ),
    (
        r#"wait; echo $?; (exit 6) & wait $!; echo $?; true & wait; echo $?"#,
        "0\n6\n0\n",
        0,
    ),
    (
        r#"x=$((1)); y=$(( x == 1 )); echo $y; echo $((y ? x : 0))$((0||0))"#,
        "1\n10\n",
        0,
    ),
    (
        r#"echo 1 | { read a; echo "got $a"; }; echo 2 | while read a; do echo "w $a"; done; echo "${a-unset}""#,
        "got 1\nw 2\nunset\n",
        0,
    ),
    (
        r#"true | false; echo $?; false | true; echo $?; ! true | false; echo $?"#,
        "1\n0\n0\n",
        0,
    ),
    (
        r#"o=$IFS; IFS=,; x=a,b; set -- $x; echo $#; IFS=$o; x="a b	c"; set -- $x; echo $# ${#o} $OPTIND"#,
        "2\n3 3 1\n",
        0,
    ),
    (
        r#"false; if (exit 3); then :; else echo $?; fi; if false; then :; elif (exit 4); then :; else echo $?; fi"#,
        "3\n4\n",
        0,
    ),
    (
        r#"false; for i in a; do echo $?; done; false; for i in; do :; done; echo $?"#,
        "1\n0\n",
        0,
    ),
    (
        r#"HOME=/t; x=~:~/z:a~:~; echo $x; y=a:~b; echo $y; z="~:~"; echo $z; q=b~; echo $q ~/x a:~"#,
        "/t:/t/z:a~:/t\na:~b\n~:~\nb~ /t/x a:~\n",
        0,
    ),
    (
        r#"set -a; x=5; env | while read l; do case $l in x=*) echo $l;; esac; done"#,
        "x=5\n",
        0,
    ),
    (
        r#"set - a b; echo $#; set -e -- x; echo $1 $-; set +e; set -o errexit; echo $-"#,
        "2\nx e\ne\n",
        0,
    ),
    (r#"echo a; set -n; echo b"#, "a\n", 0),
    (
        r#"trap 'echo a b' INT TERM; trap 'echo bye' EXIT; trap; trap - INT; trap TERM; trap 0; trap; trap x NOPE; echo $?"#,
        "trap -- 'echo bye' EXIT\ntrap -- 'echo a b' INT\ntrap -- 'echo a b' TERM\n1\n",
        0,
    ),
    (
        r#"kill -l 9; kill -l 143; kill -0 $$; echo $?; kill -s 0 $$; echo $?"#,
        "KILL\nTERM\n0\n0\n",
        0,
    ),
    (
        r#"command -v if; type while; type :; command -V cd; command -p echo x; command -- echo y"#,
        "if\nwhile is a shell keyword\n: is a special shell builtin\ncd is a shell builtin\nx\ny\n",
        0,
    ),
    (
        r#"[ /bin -ef /bin ] && echo same; [ /bin -ef / ] || echo other"#,
        "same\nother\n",
        0,
    ),
    (r#"(exit -1); echo $?"#, "2\n", 0),
    (
        r#"umask; umask 022; echo $?; umask -S"#,
        "0022\n0\nu=rwx,g=rx,o=rx\n",
        0,
    ),
    (
        r#"f() { local r=3; echo $r; }; r=1; readonly r; (f); echo $?; local x; echo not"#,
        "2\n",
        2,
    ),
];

/// What dash is started by: whoever runs the tests may ignore signals or keep modes from others,
/// and dash would inherit that.
const USUAL: &str = "umask 022; exec env --default-signal dash -c \"$1\" sh";

#[test]
fn prints_what_dash_prints() {
    let mut wrong = Vec::new();
    for &(script, output, status) in SCRIPTS {
        let ours = common::run_alone(script);
        if (ours.output.as_str(), ours.status) != (output, status) {
            wrong.push(format!(
                "{script}\n  expected {output:?} {status}\n  got      {:?} {} {:?}",
                ours.output, ours.status, ours.errors
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn dash_agrees_with_the_table() {
    for &(script, output, status) in SCRIPTS {
        let mut dash = Command::new("dash");
        dash.args(["-c", USUAL, "usual", script]).current_dir("/");
        dash.env_clear().env("PATH", "/bin:/usr/bin");
        let Ok(answer) = dash.output() else {
            eprintln!("there is no dash here to ask");
            return;
        };
        let printed = String::from_utf8_lossy(&answer.stdout);
        assert_eq!(
            (printed.as_ref(), answer.status.code()),
            (output, Some(status)),
            "{script}"
        );
    }
}
