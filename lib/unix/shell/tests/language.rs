//! What well-formed source does.

mod common;

use common::{line, run, run_lines, run_over};
use shell::Line;

fn output(text: &str) -> String {
    let outcome = run(text);
    assert_eq!(outcome.errors, "", "{text}");
    outcome.output
}

#[test]
fn words_and_quotes() {
    assert_eq!(output("echo  a   b"), "a b\n");
    assert_eq!(output("echo 'a  b' \"c  d\""), "a  b c  d\n");
    assert_eq!(
        output(r#"echo a\ b "\$x \" \\ \n" '\n'"#),
        "a b $x \" \\ \n \n\n"
    );
    assert_eq!(output("echo a'b'\"c\"d"), "abcd\n");
    assert_eq!(output("echo '' \"\" x"), "  x\n");
    assert_eq!(output("echo a \\\n b"), "a b\n");
}

#[test]
fn comments() {
    assert_eq!(output("# nothing\necho a # b 'c\necho a#b"), "a\na#b\n");
}

#[test]
fn parameters() {
    assert_eq!(
        output("echo $1 $2 $# $0 $$ $?"),
        "one two words 2 sh 77 0\n"
    );
    assert_eq!(
        output("x=5; echo $x ${x}y \"$x\" '$x' $nothing."),
        "5 5y 5 $x .\n"
    );
    assert_eq!(output("x='a  b'; echo $x \"$x\""), "a b a  b\n");
    assert_eq!(output("echo $ a$ \"$\""), "$ a$ $\n");
    assert_eq!(
        output("for i in \"$@\"; do echo \"<$i>\"; done"),
        "<one>\n<two words>\n"
    );
    assert_eq!(
        output("for i in $@; do echo \"<$i>\"; done"),
        "<one>\n<two>\n<words>\n"
    );
    assert_eq!(
        output("for i in \"$*\"; do echo \"<$i>\"; done"),
        "<one two words>\n"
    );
    assert_eq!(output("for i; do echo $i; done"), "one\ntwo words\n");
}

#[test]
fn alternatives() {
    assert_eq!(
        output("echo ${x:-none} ${x-\"a  b\"} ${HOME:-x} ${HOME:+set} ${x:+set}."),
        "none a  b /home set .\n"
    );
    assert_eq!(output("x=; echo ${x:-empty} ${x-unset}."), "empty .\n");
    assert_eq!(output("echo ${x:-${y:-deep}}"), "deep\n");
}

#[test]
fn assignments() {
    assert_eq!(output("x=1 y='a b'; echo $x \"$y\""), "1 a b\n");
    assert_eq!(output("x=1 env"), "HOME=/home\nx=1\n");
    assert_eq!(output("x=1; env"), "HOME=/home\n");
    assert_eq!(output("export x=1; x=2; env"), "HOME=/home\nx=2\n");
    assert_eq!(output("unset HOME; env"), "");
    assert_eq!(output("echo x=1"), "x=1\n");
}

#[test]
fn lists_and_statuses() {
    assert_eq!(output("true && echo a || echo b"), "a\n");
    assert_eq!(output("false && echo a || echo b"), "b\n");
    assert_eq!(output("false; echo $?; true; echo $?"), "1\n0\n");
    assert_eq!(output("! true; echo $?; ! false; echo $?"), "1\n0\n");
    assert_eq!(output("echo a &&\necho b"), "a\nb\n");
    assert_eq!(run("status 7").status, 7);
    assert_eq!(run("exit 3; echo no").status, 3);
    assert_eq!(run("false; exit").status, 1);
}

/// The first process of each pipeline or background list is the first of a job, which the others of
/// the pipeline join.
#[test]
fn jobs_of_processes() {
    assert_eq!(run("say a; say b").leaders, [None, None]);
    assert_eq!(run("say a | cat | cat").leaders, [None, Some(1), Some(1)]);
    let two = run("say a | cat & say b | cat; wait");
    assert_eq!(two.leaders, [None, Some(1), None, Some(3)]);
    // What is substituted is a job of its own, and does not lead the pipeline that it stands in.
    assert_eq!(
        run("say a | say $(say b | cat)").leaders,
        [None, None, Some(2), Some(1)]
    );
}

#[test]
fn pipes() {
    assert_eq!(output("echo a | cat | cat"), "a\n");
    assert_eq!(run("true | false").status, 1);
    assert_eq!(run("false | true").status, 0);
    assert_eq!(output("echo a |\n cat"), "a\n");
    assert_eq!(output("pwd | cat"), "/\n");
    assert_eq!(output("cd /bin | cat; pwd"), "/\n");
    assert_eq!(output("{ echo a; echo b; } | cat"), "a\nb\n");
    assert_eq!(
        output("x=loc; for i in 1 2; do echo $x$i; done | cat"),
        "loc1\nloc2\n"
    );
}

#[test]
fn redirections() {
    let outcome = run_over(
        &[("/in", "text\n")],
        "cat < /in > /out; echo more >> /out; cat < /out",
    );
    assert_eq!(outcome.output, "text\nmore\n");
    assert_eq!(run("status 0 2> /err").file("/err"), "status says\n");
    assert_eq!(run("status 0 > /all 2>&1").file("/all"), "status says\n");
    assert_eq!(run("status 0 2>&1 > /out").output, "status says\n");
    assert_eq!(run("echo oops >&2").errors, "oops\n");
    assert_eq!(run("> /empty").file("/empty"), "");
    assert_eq!(run("{ echo a; echo b; } > /out").file("/out"), "a\nb\n");
    assert_eq!(run("pwd > /out").file("/out"), "/\n");
    assert_eq!(run("echo a2 >/out").file("/out"), "a2\n");
}

#[test]
fn substitution() {
    assert_eq!(
        output("echo $(echo a; echo b) \"$(echo a; echo b)\""),
        "a b a\nb\n"
    );
    assert_eq!(output("x=$(echo \"a )\" ')'); echo $x"), "a ) )\n");
    assert_eq!(output("echo `echo a`"), "a\n");
    assert_eq!(output("echo $(echo $(echo deep))"), "deep\n");
    assert_eq!(output("x=$(false); echo $?"), "1\n");
    assert_eq!(output("x=1; echo $(echo $x $1)"), "1 one\n");
}

#[test]
fn conditions_and_loops() {
    assert_eq!(output("if true; then echo a; else echo b; fi"), "a\n");
    assert_eq!(
        output("if false; then echo a; elif true; then echo b; else echo c; fi"),
        "b\n"
    );
    assert_eq!(output("if false\nthen echo a\nfi; echo $?"), "0\n");
    assert_eq!(
        output("for i in a b c; do if [ $i = b ]; then continue; fi; echo $i; done"),
        "a\nc\n"
    );
    assert_eq!(output("while true; do echo a; break; done"), "a\n");
    assert_eq!(
        output("for i in 1 2; do for j in x y; do echo $i$j; break 2; done; done"),
        "1x\n"
    );
    assert_eq!(
        output("set -- a b c; while [ $# -gt 0 ]; do echo $1; shift; done"),
        "a\nb\nc\n"
    );
    assert_eq!(output("until false; do echo a; exit 0; done"), "a\n");
}

#[test]
fn groups_and_subshells() {
    assert_eq!(output("(cd /bin; pwd); pwd"), "/bin\n/\n");
    assert_eq!(output("{ cd /bin; pwd; }; pwd"), "/bin\n/bin\n");
    assert_eq!(output("x=1; (x=2; echo $x); echo $x"), "2\n1\n");
    assert_eq!(run("(exit 4)").status, 4);
}

#[test]
fn patterns() {
    let files = [
        ("/a1", ""),
        ("/a2", ""),
        ("/b1", ""),
        ("/d/x.txt", ""),
        ("/e/x.txt", ""),
        ("/.hidden", ""),
    ];
    let expand = |text: &str| run_over(&files, text).output;
    assert_eq!(expand("echo a*"), "a1 a2\n");
    assert_eq!(expand("echo ?1 [!a]1 [a-b]2"), "a1 b1 b1 a2\n");
    assert_eq!(expand("echo 'a*' \"a*\" a\\* z*"), "a* a* a* z*\n");
    assert_eq!(expand("echo /*/x.txt"), "/d/x.txt /e/x.txt\n");
    assert_eq!(expand("echo /[de]/*.txt"), "/d/x.txt /e/x.txt\n");
    assert_eq!(expand("echo .h*"), ".hidden\n");
    assert_eq!(expand("x='a*'; echo $x \"$x\""), "a1 a2 a*\n");
}

#[test]
fn background_and_wait() {
    let outcome = run("say a & echo $!; wait; echo $?");
    assert_eq!(outcome.output, "a\n1\n0\n");
    assert_eq!(outcome.started[0], "say a &");
    assert_eq!(run("status 5 & wait $!").status, 5);
    assert_eq!(
        run("true && echo a & wait").started[0],
        "sh -c true && echo a sh one two words &"
    );
    // Not the shell's own input: that would take lines from it.
    assert_eq!(run("cat & wait").status, 0);
}

#[test]
fn conditions_of_test() {
    for (condition, holds) in [
        ("a = a", true),
        ("a = b", false),
        ("a != b", true),
        ("2 -lt 10", true),
        ("2 -ge 10", false),
        ("-z ''", true),
        ("-n ''", false),
        ("! -n ''", true),
        ("-d /bin", true),
        ("-f /bin/echo", true),
        ("-e /none", false),
        ("", false),
        ("x", true),
    ] {
        assert_eq!(
            run(&format!("test {condition}")).status,
            i32::from(!holds),
            "{condition}"
        );
        assert_eq!(
            run(&format!("[ {condition} ]")).status,
            i32::from(!holds),
            "{condition}"
        );
    }
}

#[test]
fn lines_of_input() {
    let outcome = run_lines(vec![
        line("if true"),
        line("then echo a"),
        line("fi"),
        line("echo 'b"),
        line("c'"),
    ]);
    assert_eq!(outcome.output, "a\nb\nc\n");
    let outcome = run_lines(vec![line("exit 9"), line("echo no")]);
    assert_eq!((outcome.status, outcome.output.as_str()), (9, ""));
    let outcome = run_lines(vec![
        line("read a b"),
        line(" one two three "),
        line("echo $a,$b"),
    ]);
    assert_eq!(outcome.output, "one,two three\n");
    assert_eq!(run_lines(vec![line("false"), Line::End]).status, 1);
}

#[test]
fn times_in_minutes() {
    let outcome = run_lines(vec![line("times")]);
    assert_eq!(outcome.output, "0m0.001s 0m2.030s\n1m1.400s 60m0.000s\n");
}

#[test]
fn jobs_that_ctrl_z_stops() {
    let outcome = run_lines(vec![
        line("stopper a | cat; echo no"),
        line("echo $?"),
        line("jobs"),
        line("bg"),
        line("jobs; fg %1"),
        line("echo $?; jobs"),
    ]);
    assert_eq!(
        outcome.output,
        "148\n[1] Stopped  stopper a | cat\n[1] stopper a | cat\n[1] Running  stopper a | cat\n\
         stopper a | cat\n0\n"
    );
    assert_eq!(outcome.errors, "\n[1] Stopped  stopper a | cat\n");
    assert_eq!(outcome.started[2..], ["bg 1", "fg 1"]);
    let killed = run_lines(vec![line("endless &"), line("kill %1; wait %1; echo $?")]);
    assert_eq!(killed.output, "143\n");
    let pipe = run_lines(vec![
        line("endless | endless &"),
        line("kill %1; wait; echo on"),
    ]);
    assert_eq!(pipe.output, "on\n");
    assert_eq!(pipe.started[2..], ["kill job of 2", "kill job of 1"]);
}

#[test]
fn scripts_in_files() {
    let outcome = run_over(
        &[("/lib.sh", "f() { echo lib $1; }\nreturn 3\necho no\n")],
        ". /lib.sh; echo $?; f x; eval 'y=1;' 'echo $y'",
    );
    assert_eq!(outcome.output, "3\nlib x\n1\n");
}

#[test]
fn other_descriptors() {
    let outcome = run_over(
        &[("/in", "1\n2\n3\n")],
        "exec 3< /in 4> /out; read a <&3; read b <&3; echo $b$a >&4; exec 3<&- 4>&-; read c <&3",
    );
    assert_eq!(outcome.file("/out"), "21\n");
    assert_eq!(
        (outcome.errors.as_str(), outcome.status),
        ("sh: 3: Bad file descriptor\n", 2)
    );
    let loop_over = run_over(
        &[("/in", "a b\nc\nlast")],
        "while read x y; do echo \"<$x|$y>\"; done < /in; echo $x",
    );
    assert_eq!(loop_over.output, "<a|b>\n<c|>\nlast\n");
}

#[test]
fn a_new_shell_knows_what_the_old_one_knew() {
    let text = "x=1; f() { echo f$1 $x $$; }; set -u; false; (echo $? $-; f 2) | cat; env | cat";
    assert_eq!(output(text), "1 u\nf2 1 77\nHOME=/home\n");
    assert_eq!(output("f() { return 3; }; x=$(f); echo $?"), "3\n");
    assert_eq!(
        output("x=1; y=$(x=2; echo $x); echo $x$y $(: ${z:=5}) $z"),
        "12\n"
    );
}

#[test]
fn files_that_are_to_be_kept() {
    let outcome = run("set -C; echo a > /n; echo b > /n; echo $?; echo c >> /n; echo d >| /m");
    assert_eq!(outcome.output, "2\n");
    assert_eq!(outcome.errors, "sh: /n: File exists\n");
    assert_eq!(
        (outcome.file("/n").as_str(), outcome.file("/m").as_str()),
        ("a\nc\n", "d\n")
    );
}

#[test]
fn options_of_set_are_listed() {
    let outcome = run("set -u; set +o; set -o");
    assert!(
        outcome.output.contains("set +o errexit\n"),
        "{}",
        outcome.output
    );
    assert!(
        outcome.output.contains("set -o nounset\n"),
        "{}",
        outcome.output
    );
    assert!(
        outcome.output.contains("nounset         on\n"),
        "{}",
        outcome.output
    );
}

#[test]
fn the_terminal_is_as_wide_as_the_variable_says() {
    let lines = ["COLUMNS=132", "COLUMNS=wide", "unset COLUMNS", "exit"];
    let columns = common::columns_of(lines.map(line).to_vec());
    assert_eq!(columns, [None, Some(132), None, None]);
}

#[test]
fn what_a_person_asks_for() {
    assert_eq!(output("history"), "    1  ls /\n    2  echo two words\n");
    assert_eq!(output("history 1"), "    2  echo two words\n");
    assert_eq!(
        output("history 9; clear"),
        output("history") + "\x1b[H\x1b[2J\x1b[3J"
    );
    let help = output("help");
    for name in ["cd", "which", "history", "umask"] {
        assert!(
            help.split_whitespace().any(|word| word == name),
            "{name}: {help}"
        );
    }
    assert!(help.lines().all(|line| line.len() < 100));
    let outcome = run("history many; echo $?; history 1 2; which broken nothing; echo $?");
    assert_eq!(outcome.output, "2\n/bin/broken\n1\n");
    assert_eq!(outcome.errors.lines().count(), 2, "{}", outcome.errors);
}
