//! Changes of the default manifest.

use anyhow::{Context, Result, ensure};

/// The header of a domain's section.
fn header(domain: &str) -> String {
    format!("[domain.{domain}]\n")
}

/// The name of a limit.
fn name(limit: &str) -> &str {
    limit.split(" =").next().unwrap_or(limit)
}

/// The manifest `text` with these limits for each of `domains`, beside others that they have.
///
/// # Errors
/// If it has no such domain.
pub fn with_limits(text: &str, domains: &[&str], limits: &str) -> Result<String> {
    let mut text = text.to_string();
    for domain in domains {
        let header = header(domain);
        ensure!(text.contains(&header), "the manifest has no {header:?}");
        let start = text.find(&header).map_or(0, |at| at + header.len());
        let end = text[start..]
            .find("\n[")
            .map_or(text.len(), |at| start + at);
        const OWN: &str = "limits = { ";
        match text[start..end].find(OWN) {
            Some(at) => {
                let at = start + at + OWN.len();
                let end = text[at..].find('}').map_or(at, |end| at + end);
                let names: Vec<_> = limits.split(", ").map(name).collect();
                let own = text[at..end].trim_end().split(", ");
                let kept = own.filter(|limit| !names.contains(&name(limit)));
                let all: Vec<_> = [limits].into_iter().chain(kept).collect();
                text.replace_range(at..end, &format!("{} ", all.join(", ")));
            }
            None => text.insert_str(start, &format!("limits = {{ {limits} }}\n")),
        }
    }
    Ok(text)
}

/// What [`with_guest`] adds.
const GUEST: &str = r#"
[domain.linux]
pass = ["exec"]
limits = { threads = 300, reserve_pages = 1024 }
grants = { spaces = "kernel.spaces", objects = "kernel.objects", archive = "kernel.archive", disk = "vfs.respawn", random = "kernel.random", console = "console" }

[program.guest]
services = ["linux"]
"#;

/// The manifest `text` with a personality for Linux programs besides, which has the disk, and a
/// program of the shell that may use it.
///
/// # Errors
/// If it has no services.
pub fn with_guest(text: &str) -> Result<String> {
    const SERVICES: &str = "[services]\n";
    ensure!(text.contains(SERVICES), "the manifest has no {SERVICES:?}");
    let with = format!("{SERVICES}linux = \"linux\"\n");
    Ok(text.replacen(SERVICES, &with, 1) + GUEST)
}

/// The section of a domain in the manifest `text`, with its header, up to the next section or the
/// comment before it.
///
/// # Errors
/// If it has no such domain.
pub fn section<'a>(text: &'a str, domain: &str) -> Result<&'a str> {
    let header = header(domain);
    let start = text
        .find(&header)
        .with_context(|| format!("the manifest has no {header:?}"))?;
    let rest = &text[start..];
    let ends = ["\n[", "\n\n#"].map(|end| rest.find(end).unwrap_or(rest.len()));
    Ok(rest[..ends[0].min(ends[1])].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[domain.one]\ngrants = {\n    a = \"b\",\n}\n\n\
        [domain.two]\ngrants = { c = \"d\" }\nlimits = { weight = 7 }\n\n[domain.three]\n";

    #[test]
    fn limits_come_beside_those_that_are_there() {
        let text = with_limits(TEXT, &["one", "two", "three"], "restarts = 9").expect("all there");
        assert!(text.contains("[domain.one]\nlimits = { restarts = 9 }\ngrants"));
        assert!(text.contains("\nlimits = { restarts = 9, weight = 7 }\n"));
        assert!(text.ends_with("[domain.three]\nlimits = { restarts = 9 }\n"));
        assert_eq!(text.matches("limits").count(), 3);
        let text = with_limits(&text, &["two"], "restarts = 10, pages = 4").expect("it is there");
        assert!(text.contains("\nlimits = { restarts = 10, pages = 4, weight = 7 }\n"));
    }

    #[test]
    fn a_section_ends_before_what_comes_next() {
        let text = format!("{TEXT}limits = {{ weight = 8 }}\n\n# Another one.\n[domain.four]\n");
        let two = section(&text, "two").expect("it is there");
        assert_eq!(
            two,
            "[domain.two]\ngrants = { c = \"d\" }\nlimits = { weight = 7 }"
        );
        let three = section(&text, "three").expect("it is there");
        assert_eq!(three, "[domain.three]\nlimits = { weight = 8 }");
        assert_eq!(
            section(&text, "four").expect("it is there"),
            "[domain.four]"
        );
    }

    #[test]
    fn a_domain_that_is_not_there_is_an_error() {
        assert!(with_limits(TEXT, &["one", "four"], "restarts = 9").is_err());
        assert!(section(TEXT, "four").is_err());
    }
}
