//! The options text that `init` gives to this domain: see `rv6.idl`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// What the options say.
#[derive(Default)]
pub struct Settings {
    /// The console is not a terminal.
    pub exec: bool,
    /// Private memory of a program, in pages, at most.
    pub pages: Option<u64>,
    /// Threads of a program, besides the one that runs it, at most.
    pub threads: Option<u32>,
    /// What is held here for a job, in bytes, at most.
    pub job_bytes: Option<u64>,
    /// The line that the machine was started with.
    pub command_line: String,
    /// The disk that the root file system is on.
    pub root_disk: Option<String>,
    /// Names of program images and the services that they may ask for.
    pub grants: Vec<(String, Vec<String>)>,
    /// Lines that mean nothing.
    pub unknown: Vec<String>,
}

impl Settings {
    /// Reads the text.
    pub fn parse(text: &[u8]) -> Self {
        let mut settings = Settings::default();
        for line in String::from_utf8_lossy(text).lines().map(str::trim) {
            if !line.is_empty() && settings.line(line).is_none() {
                settings.unknown.push(line.to_string());
            }
        }
        settings
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if line == "exec" {
            self.exec = true;
        } else if let Some(text) = line.strip_prefix("command-line ") {
            self.command_line = text.to_string();
        } else if let Some(name) = line.strip_prefix("root-disk ") {
            self.root_disk = Some(name.to_string());
        } else if let Some(pages) = line.strip_prefix("pages ") {
            self.pages = Some(pages.trim().parse().ok()?);
        } else if let Some(threads) = line.strip_prefix("threads ") {
            self.threads = Some(threads.trim().parse().ok()?);
        } else if let Some(bytes) = line.strip_prefix("job-bytes ") {
            self.job_bytes = Some(bytes.trim().parse().ok()?);
        } else {
            let (name, services) = line.strip_prefix("program ")?.split_once(':')?;
            let services = services.split_whitespace().map(str::to_string).collect();
            self.grants.push((name.trim().to_string(), services));
        }
        Some(())
    }

    /// Whether programs of this image may ask for the service.
    pub fn granted(&self, image: &str, service: &str) -> bool {
        let mut of_image = self.grants.iter().filter(|(name, _)| name == image);
        of_image.any(|(_, services)| services.iter().any(|granted| granted == service))
    }
}

/// Columns and lines of the terminal, if the machine's command line has the word
/// `terminal=COLUMNSxLINES`.
pub fn terminal(command_line: &str) -> Option<(u16, u16)> {
    let mut words = command_line.split_whitespace();
    let size = words.find_map(|word| word.strip_prefix("terminal="))?;
    let (columns, lines) = size.split_once('x')?;
    let (columns, lines) = (columns.parse().ok()?, lines.parse().ok()?);
    (columns > 0 && lines > 0).then_some((columns, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_terminal() {
        assert_eq!(terminal("ro terminal=120x40 log=com2"), Some((120, 40)));
        for line in [
            "",
            "terminal=",
            "terminal=80",
            "terminal=0x0",
            "terminal=80x",
            "terminal=-1x99999",
        ] {
            assert_eq!(terminal(line), None, "{line}");
        }
    }

    #[test]
    fn reads_what_init_writes() {
        let settings = Settings::parse(
            b"exec\n pages 100 \nthreads 7\nprogram crash: control monitor\nprogram ps:\n",
        );
        assert!(settings.exec && settings.unknown.is_empty());
        assert_eq!((settings.pages, settings.threads), (Some(100), Some(7)));
        assert_eq!((settings.pages, settings.job_bytes), (Some(100), None));
        assert_eq!(Settings::parse(b"job-bytes 5").job_bytes, Some(5));
        assert!(settings.granted("crash", "control") && settings.granted("crash", "monitor"));
        assert!(!settings.granted("crash", "power") && !settings.granted("ps", "monitor"));
        assert!(!settings.granted("cras", "control"));
    }

    #[test]
    fn keeps_what_it_does_not_understand() {
        let settings =
            Settings::parse(b"executive\npages many\nthreads -1\nprogram crash control\n\xff\n");
        assert_eq!(settings.unknown.len(), 5);
        assert!(!settings.exec && settings.pages.is_none() && settings.grants.is_empty());
    }
}
