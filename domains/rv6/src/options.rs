//! The options text that `init` gives to this domain: see `rv6.idl`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use domain_rt::log;

/// What the options say.
#[derive(Default)]
pub struct Settings {
    /// The console is not a terminal.
    pub exec: bool,
    /// Private memory of a program, in pages, at most.
    pub pages: Option<u64>,
    /// Names of program images and the services they may ask for.
    pub grants: Vec<(String, Vec<String>)>,
}

impl Settings {
    /// Reads the text. Lines that mean nothing are logged and left out.
    pub fn parse(text: &[u8]) -> Self {
        let mut settings = Settings::default();
        for line in String::from_utf8_lossy(text).lines().map(str::trim) {
            if !line.is_empty() && settings.line(line).is_none() {
                log!("option not understood: {line}");
            }
        }
        settings
    }

    fn line(&mut self, line: &str) -> Option<()> {
        if line == "exec" {
            self.exec = true;
        } else if let Some(pages) = line.strip_prefix("pages ") {
            self.pages = Some(pages.trim().parse().ok()?);
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
