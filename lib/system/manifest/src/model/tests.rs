//! Manifests that are read, and the words in which others are refused.

use super::*;

const WHOLE: &str = r#"
[boot]
personality = "rv6"
shell = "/bin/sh"
[domain.disk]
image = "memory-disk"
options = "size=1M"
limits = { pages = 300, deadline_percent = 20, restarts = 2 }
[domain.rv6]
pass = ["exec"]
[domain.rv6.grants]
loader = "kernel.loader"
root = "disk.respawn"
[program.ls]
services = ["root"]
"#;

fn fails(text: &str) -> Error {
    Manifest::parse(text).expect_err("a bad manifest")
}

#[test]
fn reads_a_whole_manifest() {
    let manifest = Manifest::parse(WHOLE).expect("well-formed");
    let disk = &manifest.domains[0];
    assert_eq!(
        (disk.image.as_str(), disk.limits),
        (
            "memory-disk",
            Limits {
                pages: 300,
                deadline_percent: 20,
                restarts: 2,
                ..Limits::default()
            }
        )
    );
    let rv6 = &manifest.domains[1];
    assert_eq!(
        (rv6.image.as_str(), rv6.grants.len(), rv6.pass.as_slice()),
        ("rv6", 2, &["exec".to_owned()][..])
    );
    assert_eq!(
        rv6.grants[1].source,
        Source::Respawn {
            domain: "disk".into(),
            port: None
        }
    );
    assert_eq!(manifest.programs[0].services, ["root"]);
    assert_eq!(manifest.boot.shell.as_deref(), Some("/bin/sh"));
}

#[test]
fn names_a_missing_domain() {
    let error = fails("[domain.ext2]\ngrants = {\n device = \"blok\" }");
    assert_eq!(error.line, 3);
    assert!(
        error.message.contains("no [domain.blok]; there are ext2"),
        "{error}"
    );
}

#[test]
fn refuses_what_is_unknown_or_of_the_wrong_kind() {
    for (text, line, wanted) in [
        ("[domains.x]", 1, "found [domains.x]"),
        (
            "[domain.x]\nimages = \"y\"",
            2,
            "[domain.x] has no key `images`",
        ),
        (
            "[domain.x]\nimage = 3",
            2,
            "`image` is an integer, expected a string",
        ),
        (
            "[domain.x]\ngrants = [\"y\"]",
            2,
            "expected an inline table",
        ),
        ("[domain.x]\ngrants = { a = 1 }", 2, "expected a string"),
        (
            "[domain.x]\ngrants = { a = \"kernel.root\" }",
            2,
            "has no service `root`",
        ),
        ("[domain.x]\nlimits = { pages = -1 }", 2, "between 0 and"),
        (
            "[domain.x]\nlimits = { threads = 4294967296 }",
            2,
            "between 0 and 4294967295",
        ),
        (
            "[domain.x]\nlimits = { page = 1 }",
            2,
            "limits has no key `page`",
        ),
        ("[domain.x]\ndump = true", 2, "expected a string"),
        ("[domain.x]\ndump = \"disk\"", 2, "and not to `disk`"),
        ("[domain.x]\ndevice = true", 2, "expected a string"),
        ("[domain.x]\ndevice = \"none\"", 2, "and not `none`"),
        ("[domain.x.limits]", 1, "stands before [domain.x]"),
        ("[domain.kernel]", 1, "not free"),
        ("[program.x]\nservice = [\"y\"]", 2, "it has services"),
        ("\n[boot]\npersonality = \"rv6\"", 2, "no [domain.rv6]"),
        ("[boot]\nshel = \"x\"", 2, "[boot] has no key `shel`"),
    ] {
        let error = fails(text);
        assert_eq!(error.line, line, "{text}");
        assert!(error.message.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn a_dump_is_for_the_domain_that_asks_and_its_copies() {
    let text = "[domain.x]\n[domain.y]\ngrants = { d = \"x\" }\ndump = \"host\"\n\
                [disk.a]\ndevice = \"x\"\nfiles = \"y\"\n[disk.b]\nlike = \"a\"";
    let manifest = Manifest::parse(text).expect("right");
    let dumped = manifest.domains.iter().filter(|domain| domain.dump);
    let names: Vec<_> = dumped.map(|domain| domain.name.as_str()).collect();
    assert_eq!(names, ["y", "y-b"]);
}

#[test]
fn a_program_gets_only_what_the_personality_has() {
    let text = WHOLE.replace("services = [\"root\"]", "services = [\"power\"]");
    assert!(fails(&text).message.contains(
        "program `ls` is given `power`, which is neither in [services] nor granted to `rv6`"
    ));
}

#[test]
fn services_are_named_once_for_all_programs() {
    let text = WHOLE.replace("services = [\"root\"]", "services = [\"store\", \"root\"]");
    let with = |source: &str| format!("{text}[services]\nstore = \"{source}\"\n");
    let manifest = Manifest::parse(&with("disk.whole")).expect("well-formed");
    assert_eq!(manifest.services[0].port, "store");
    assert_eq!(manifest.services[0].source.domain(), Some("disk"));
    for (source, wanted) in [
        (
            "disc",
            "programs are to be granted `store` from domain `disc`, but",
        ),
        ("disk.respawn", "`store` cannot be a service of programs"),
        (
            "kernel.ports(1,2)",
            "`store` cannot be a service of programs",
        ),
        (
            "pci.claim(1af4:1042)",
            "`store` cannot be a service of programs",
        ),
        ("init.services", "`store` cannot be a service of programs"),
    ] {
        let error = fails(&with(source));
        assert!(error.message.contains(wanted), "{source}: {error}");
        assert_eq!(error.line, 17, "{source}");
    }
    assert!(
        fails(&text)
            .message
            .contains("given `store`, which is neither")
    );
}

#[test]
fn grants_are_counted_and_unique() {
    let twice =
        "[domain.x]\ngrants = { a = \"kernel.power\" }\n[domain.x.grants]\na = \"kernel.loader\"";
    assert!(fails(twice).message.contains("grant `a` twice"));
    let mut many = String::from("[domain.x.]\n").replace(".]", "]");
    many.push_str("[domain.x.grants]\n");
    for number in 0..=MOST_GRANTS {
        many.push_str(&format!("g{number} = \"kernel.power\"\n"));
    }
    assert!(fails(&many).message.contains("17 grants"));
}

#[test]
fn names_have_a_length() {
    assert!(
        fails(&format!("[domain.{}]", "x".repeat(33)))
            .message
            .contains("1 to 32 bytes")
    );
}
