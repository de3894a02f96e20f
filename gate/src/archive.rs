//! Writes a cpio archive in the "newc" format (cpio(5)), which the kernel gets as its initial disk.

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const MODE_FILE: u32 = 0o100_644;
const MODE_PROGRAM: u32 = 0o100_755;
const MODE_FOLDER: u32 = 0o040_755;
const MODE_DEVICE: u32 = 0o020_600;
const LAST: &str = "TRAILER!!!";

impl Archive {
    /// Appends a file called `name` with `content`.
    ///
    /// # Panics
    /// If the content is 4 GiB or longer.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        self.next(name, MODE_FILE, (0, 0), content);
    }

    /// Appends a file that may be executed.
    ///
    /// # Panics
    /// If the content is 4 GiB or longer.
    pub fn add_program(&mut self, name: &str, content: &[u8]) {
        self.next(name, MODE_PROGRAM, (0, 0), content);
    }

    /// Appends an empty folder.
    pub fn add_folder(&mut self, name: &str) {
        self.next(name, MODE_FOLDER, (0, 0), &[]);
    }

    /// Appends a character device.
    pub fn add_device(&mut self, name: &str, major: u32, minor: u32) {
        self.next(name, MODE_DEVICE, (major, minor), &[]);
    }

    fn next(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        self.entry(name, [self.entries, mode], device, content);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(LAST, [0, 0], (0, 0), &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, [inode, mode]: [u32; 2], device: (u32, u32), content: &[u8]) {
        let length = u32::try_from(content.len()).expect("files are shorter than 4 GiB");
        let name_length = name.len() as u32 + 1;
        self.bytes.extend(b"070701");
        // inode, mode, user, group, links, time, length, device (2), special device (2), name,
        // check
        for field in [
            inode,
            mode,
            0,
            0,
            1,
            0,
            length,
            0,
            0,
            device.0,
            device.1,
            name_length,
            0,
        ] {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an archive back: name and content of each entry up to the last.
    fn read(mut rest: &[u8]) -> Vec<(String, Vec<u8>)> {
        let mut entries = Vec::new();
        loop {
            let field = |index: usize| {
                let text = std::str::from_utf8(&rest[6 + index * 8..][..8]).expect("hexadecimal");
                usize::from_str_radix(text, 16).expect("hexadecimal")
            };
            let (length, name_length) = (field(6), field(11));
            let name = String::from_utf8(rest[110..109 + name_length].to_vec()).expect("text");
            let body = (110 + name_length).next_multiple_of(4);
            if name == LAST {
                return entries;
            }
            entries.push((name, rest[body..body + length].to_vec()));
            rest = &rest[(body + length).next_multiple_of(4)..];
        }
    }

    #[test]
    fn what_is_added_is_found() {
        let mut archive = Archive::default();
        archive.add("manifest.toml", b"[boot]");
        archive.add("domains/init", b"1234567");
        archive.add("empty", b"");
        let bytes = archive.finish();
        assert!(bytes.len().is_multiple_of(4));
        let names: Vec<_> = read(&bytes)
            .into_iter()
            .map(|(name, body)| (name, body.len()))
            .collect();
        assert_eq!(
            names,
            [
                ("manifest.toml".into(), 6),
                ("domains/init".into(), 7),
                ("empty".into(), 0)
            ]
        );
    }
}
