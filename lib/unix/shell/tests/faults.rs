//! What a user sees when something is wrong. Each fault must say its cause, give the right status,
//! and leave no descriptor open (which `common` checks after every run).

mod common;

use common::{line, run, run_lines, run_over};
use shell::{Line, MOST_NESTING, parse};

/// The message and whether more lines could help.
fn error(text: &str) -> (String, bool) {
    let error = parse(text.as_bytes()).expect_err(text);
    (error.to_string(), error.incomplete)
}

#[test]
fn what_is_not_closed() {
    for (text, what) in [
        ("echo 'a", "single quote (')"),
        ("echo \"a", "double quote (\")"),
        ("echo \"$(x\"", "double quote (\")"),
        ("echo $(a", "parenthesis"),
        ("(a", "parenthesis"),
        ("echo ${a", "brace (${)"),
        ("echo `a", "backquote (`)"),
    ] {
        assert_eq!(
            error(text),
            (format!("syntax error: unterminated {what}"), true),
            "{text}"
        );
    }
}

#[test]
fn missing_commands() {
    for after in ["|", "&&", "||"] {
        let (message, incomplete) = error(&format!("true {after} "));
        assert_eq!(
            message,
            format!("syntax error: a command is missing after `{after}`")
        );
        assert!(incomplete);
        let (message, incomplete) = error(&format!("true {after} ; a"));
        assert_eq!(
            message,
            format!("syntax error: a command is missing after `{after}`")
        );
        assert!(!incomplete);
    }
    assert_eq!(error("!").0, "syntax error: a command is missing after `!`");
    assert_eq!(
        error("if then a; fi").0,
        "syntax error: a command is missing after `if`"
    );
    assert_eq!(
        error("{ }").0,
        "syntax error: a command is missing after `{`"
    );
    assert_eq!(
        error("()").0,
        "syntax error: a command is missing after `(`"
    );
}

#[test]
fn what_stands_where_it_cannot() {
    for (text, what) in [
        ("| a", "|"),
        ("a ; ; b", ";"),
        ("; a", ";"),
        ("& a", "&"),
        ("a ;; b", ";;"),
        (")", ")"),
        ("a )", ")"),
        ("fi", "fi"),
        ("a; then b", "then"),
        ("}", "}"),
        ("f(a) { b; }", "a"),
        ("1f() { a; }", "("),
        ("esac", "esac"),
        ("{ a; } b", "b"),
        ("&& a", "&&"),
    ] {
        assert_eq!(
            error(text),
            (format!("syntax error: unexpected `{what}`"), false),
            "{text}"
        );
    }
}

#[test]
fn missing_keywords_and_names() {
    assert_eq!(error("if a; b; fi").0, "syntax error: unexpected `fi`");
    assert_eq!(error("if a; (b)").0, "syntax error: `then` is missing");
    assert_eq!(error("while a; done").0, "syntax error: unexpected `done`");
    assert_eq!(
        error("for 1x in a; do b; done").0,
        "syntax error: `variable name after for` is missing"
    );
    assert_eq!(
        error("for x in a; b; done").0,
        "syntax error: `do` is missing"
    );
    assert!(error("if a; then b").1);
    assert!(error("while a; do").1);
    for operator in ["<", ">", ">>"] {
        let message = format!("syntax error: a file name is missing after `{operator}`");
        assert_eq!(error(&format!("a {operator}")), (message.clone(), false));
        assert_eq!(error(&format!("a {operator} | b")).0, message);
    }
}

#[test]
fn what_this_shell_does_not_have() {
    assert_eq!(
        error("a 10> x").0,
        "10: only descriptors 0 to 9 can be redirected"
    );
    assert_eq!(
        error("a >&10").0,
        "10: only descriptors 0 to 9 can be redirected"
    );
    assert_eq!(error("a <> b").0, "`<>` is not supported by this shell");
    assert_eq!(
        error("a 99999999999999999999999> x").0.split(':').nth(1),
        Some(" only descriptors 0 to 9 can be redirected")
    );
    for text in [
        "${}", "${1x}", "${x:}", "${x!}", "${=}", "${#x-1}", "${x:#y}",
    ] {
        assert_eq!(
            error(&format!("echo {text}")).0,
            "syntax error: bad `${...}`",
            "{text}"
        );
    }
}

#[test]
fn lines_are_counted() {
    assert_eq!(
        error("a\nb\nc | ; d").0,
        "line 3: syntax error: a command is missing after `|`"
    );
    assert_eq!(
        error("a\n'b\n\n").0,
        "line 2: syntax error: unterminated single quote (')"
    );
}

#[test]
fn nesting_is_bounded() {
    let deep = MOST_NESTING + 1;
    assert_eq!(error(&"(".repeat(10_000)).0, "nested too deep");
    assert_eq!(
        error(&format!(
            "echo {}x{}",
            "${a:-".repeat(deep),
            "}".repeat(deep)
        ))
        .0,
        "nested too deep"
    );
    assert_eq!(error(&"if ".repeat(10_000)).0, "nested too deep");
    assert_eq!(
        error(&format!("echo {}", "\"$(".repeat(10_000))).0,
        "nested too deep"
    );
}

#[test]
fn a_syntax_error_runs_nothing() {
    let outcome = run("echo a; echo b |");
    assert_eq!((outcome.status, outcome.output.as_str()), (2, ""));
    assert_eq!(
        outcome.errors,
        "sh: syntax error: a command is missing after `|`\n"
    );
}

#[test]
fn commands_that_cannot_run() {
    let outcome = run("nothere; echo $?");
    assert_eq!(
        (outcome.errors.as_str(), outcome.output.as_str()),
        ("sh: nothere: command not found\n", "127\n")
    );
    let outcome = run("/no/such");
    assert_eq!(
        (outcome.errors.as_str(), outcome.status),
        ("sh: /no/such: No such file or directory\n", 127)
    );
    let outcome = run("/bin");
    assert_eq!(
        (outcome.errors.as_str(), outcome.status),
        ("sh: /bin: Is a directory\n", 126)
    );
    let outcome = run("broken");
    assert_eq!(
        (outcome.errors.as_str(), outcome.status),
        ("sh: broken: not a program image\n", 126)
    );
    let outcome = run("''");
    assert_eq!(
        (outcome.errors.as_str(), outcome.status),
        ("sh: : command not found\n", 127)
    );
}

#[test]
fn a_file_system_that_is_down_is_named() {
    let outcome = run("PATH=/down:/bin; echo a; nothere");
    assert_eq!(outcome.output, "a\n");
    assert_eq!(
        outcome.errors,
        "sh: nothere: file system was restarted, try again (/down)\n"
    );
    assert_eq!(outcome.status, 126);
}

#[test]
fn commands_that_end_badly() {
    let outcome = run("crasher; echo $?");
    assert_eq!(
        (outcome.errors.as_str(), outcome.output.as_str()),
        ("sh: crasher: crashed (see dmesg)\n", "139\n")
    );
    assert_eq!(run("killed").status, 137);
    assert_eq!(run("crasher | cat").status, 0);
    assert_eq!(run("echo a | nothere").status, 127);
    assert_eq!(run("nothere | cat").status, 0);
}

#[test]
fn redirections_that_fail() {
    let outcome = run("echo a < /none; echo $?");
    assert_eq!(outcome.errors, "sh: /none: No such file or directory\n");
    assert_eq!(outcome.output, "2\n");
    assert_eq!(outcome.started, [""; 0]);
    let outcome = run("echo a > /x < /none | cat");
    assert_eq!(outcome.errors, "sh: /none: No such file or directory\n");
    let outcome = run("{ echo a; } < /none");
    assert_eq!((outcome.output.as_str(), outcome.status), ("", 2));
    let outcome = run("echo a >&7; echo $?");
    assert_eq!(outcome.errors, "sh: 7: Bad file descriptor\n");
    assert_eq!(run(": > $nothing; echo on").output, "");
}

#[test]
fn where_a_redirection_leads_is_one_word() {
    let outcome = run_over(
        &[("/a1", ""), ("/a2", "")],
        "x='a b'; echo x > a*; echo y > $x",
    );
    assert_eq!((outcome.status, outcome.errors.as_str()), (0, ""));
    assert_eq!(
        (outcome.file("/a1").as_str(), outcome.file("/a*").as_str()),
        ("", "x\n")
    );
    assert_eq!(outcome.file("/a b"), "y\n");
}

#[test]
fn builtins_that_fail() {
    for (text, message, status) in [
        ("cd /nowhere", "cd: /nowhere: No such file or directory", 2),
        ("cd a b", "cd: too many arguments", 2),
        ("cd -", "cd: OLDPWD not set", 2),
        ("exit abc", "exit: Illegal number: abc", 2),
        ("export 1=2", "export: 1: not a variable name", 2),
        ("unset a-b", "unset: a-b: not a variable name", 2),
        ("shift 9", "shift: can't shift that many", 2),
        ("shift -1", "shift: can't shift that many", 2),
        ("wait 55", "wait: 55: not a child of this shell", 127),
        ("local x", "local: not in a function", 2),
        ("readonly x=1; x=2", "x: is read only", 2),
        ("readonly x; unset x", "unset: x: is read only", 2),
        (". /none", ".: /none: No such file or directory", 2),
        ("fg", "fg: no such job", 1),
        ("kill %3", "kill: no such job", 1),
        ("kill x", "kill: Illegal number: x", 2),
        ("printf %d x", "printf: x: expected numeric value", 1),
        (
            "for i in a; do break 0; done",
            "break: a count of at least 1 is needed",
            2,
        ),
        ("[ a = a", "[: `]` is missing", 2),
        ("test -foo b", "test: -foo: unexpected operator", 2),
        ("test a -lt 1", "test: Illegal number: a", 2),
        ("test a b c d e f", "test: b: unexpected operator", 2),
        ("read", "read: arg count", 2),
        ("set -q", "set: Illegal option -q", 2),
        ("echo ${x?}", "x: parameter not set or null", 2),
        ("echo ${x:?gone}", "x: gone", 2),
        ("set -u; echo $x", "x: parameter not set", 2),
        (
            "echo $((1/0))",
            "arithmetic expression: division by zero",
            2,
        ),
        ("trap x NEVER", "trap: NEVER: bad trap", 1),
    ] {
        let outcome = run(text);
        assert_eq!(
            (outcome.errors, outcome.status),
            (format!("sh: {message}\n"), status),
            "{text}"
        );
    }
}

#[test]
fn what_grows_without_end_is_stopped() {
    let text = "x=aaaaaaaa; while [ $x != b ]; do x=$x$x$x$x; [ $? = 0 ] || break; done; echo on";
    let outcome = run(text);
    assert_eq!(
        outcome.errors,
        "sh: the command becomes too long when it is expanded\n"
    );
    assert_eq!((outcome.output.as_str(), outcome.status), ("", 2));
    let recursion = run("f() { f; }; f; echo on");
    assert_eq!(
        (recursion.errors.as_str(), recursion.status),
        ("sh: nested too deep\n", 2)
    );
    let recursion = run("f() { eval f; }; f; echo on");
    assert_eq!(
        (recursion.errors.as_str(), recursion.status),
        ("sh: nested too deep\n", 2)
    );
    // Nobody reads, so the loop must end by itself.
    let outcome = run("exec > /broken-pipe; while true; do echo a; done");
    assert_eq!(outcome.status, 141);
}

#[test]
fn a_full_disk_is_an_error_of_the_command_that_wrote() {
    let outcome = run("echo a > /full; echo $?; printf b > /full || pwd > /full; echo $? on");
    assert_eq!(outcome.output, "1\n1 on\n");
    let error = "sh: write error: No space left on device\n";
    assert_eq!(outcome.errors, error.repeat(3));
}

#[test]
fn break_means_nothing_outside_its_shell() {
    assert_eq!(
        run("for i in 1 2; do (break); echo $i; done").output,
        "1\n2\n"
    );
}

#[test]
fn interrupts_at_the_prompt_drop_the_line() {
    let outcome = run_lines(vec![line("echo 'abc"), Line::Interrupted, line("echo $?")]);
    assert_eq!(
        (outcome.output.as_str(), outcome.errors.as_str()),
        ("130\n", "")
    );
}

#[test]
fn an_interrupted_command_ends_its_line() {
    let outcome = run_lines(vec![line("int; echo no"), line("echo $?")]);
    assert_eq!(outcome.output, "130\n");
    let outcome = run_lines(vec![
        line("while true; do int || echo no; done"),
        line("echo $?"),
    ]);
    assert_eq!(outcome.output, "130\n");
    assert_eq!(
        run_lines(vec![line("{ int; echo no; } > /x"), line("echo $?")]).output,
        "130\n"
    );
}

#[test]
fn a_program_that_is_told_of_interrupts_itself_does_not_end_the_line() {
    let outcome = run_lines(vec![
        line("told; echo $?"),
        line("told"),
        line("true; echo on"),
    ]);
    assert_eq!(outcome.output, "0\non\n");
}

#[test]
fn waiting_for_the_background_can_be_interrupted() {
    let outcome = run_lines(vec![
        line("endless & true"),
        line("wait; echo no"),
        line("echo $?"),
    ]);
    assert_eq!(
        (outcome.output.as_str(), outcome.errors.as_str()),
        ("130\n", "[1] 1\n")
    );
}

#[test]
fn input_that_ends_too_early() {
    let outcome = run_lines(vec![line("echo a"), line("if true")]);
    assert_eq!(outcome.output, "a\n");
    assert_eq!(
        outcome.errors,
        "sh: line 2: syntax error: `then` is missing\n"
    );
    assert_eq!(outcome.status, 2);
}

#[test]
fn a_background_command_that_ends_is_reported_once() {
    let outcome = run_lines(vec![line("crasher &"), line("true"), line("true")]);
    assert_eq!(outcome.errors, "[1] 1\n[1] Crashed  crasher\n");
    let outcome = run_lines(vec![line("nothere &"), line("echo $?")]);
    assert_eq!(outcome.output, "127\n");
}
