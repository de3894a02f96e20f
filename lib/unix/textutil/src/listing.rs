//! Lines of `ls -l`.

use crate::directory::Kind;
use alloc::string::String;
use alloc::vec::Vec;

/// What `ls -l` shows of one file.
#[derive(Clone, Debug)]
pub struct Row {
    /// What it is.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    /// Number of links.
    pub links: u32,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// Length in bytes.
    pub size: u64,
    /// Date of its last change, as text.
    pub date: String,
    /// Its name.
    pub name: Vec<u8>,
    /// Where a symbolic link leads.
    pub target: Option<Vec<u8>>,
}

/// The kind and permissions as ten characters, such as `-rw-r--r--`.
pub fn mode_text(kind: Kind, mode: u16) -> String {
    let mut text = String::with_capacity(10);
    text.push(match kind {
        Kind::Regular => '-',
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        Kind::CharacterDevice => 'c',
        Kind::BlockDevice => 'b',
        Kind::Pipe => 'p',
        Kind::Socket => 's',
        Kind::Other => '?',
    });
    for (shift, special_bit, special) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special_bit != 0, bits & 1 != 0) {
            (true, true) => special,
            (true, false) => special.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// The owner's name: there is no list of users, so only 0 has one.
pub fn owner(number: u32) -> String {
    match number {
        0 => String::from("root"),
        _ => alloc::format!("{number}"),
    }
}

/// The lines for `rows`, their columns aligned, each with a line break.
pub fn long_lines(rows: &[Row]) -> Vec<u8> {
    let widest = |column: fn(&Row) -> String| rows.iter().map(|row| column(row).len()).max();
    let columns: [fn(&Row) -> String; 4] = [
        |row| alloc::format!("{}", row.links),
        |row| owner(row.user),
        |row| owner(row.group),
        |row| alloc::format!("{}", row.size),
    ];
    let [links, user, group, size] = columns.map(|column| widest(column).unwrap_or(0));
    let mut text = Vec::new();
    for row in rows {
        let line = alloc::format!(
            "{} {:>links$} {:<user$} {:<group$} {:>size$} {} ",
            mode_text(row.kind, row.mode),
            row.links,
            owner(row.user),
            owner(row.group),
            row.size,
            row.date
        );
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(&row.name);
        if let Some(target) = &row.target {
            text.extend_from_slice(b" -> ");
            text.extend_from_slice(target);
        }
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, mode: u16, size: u64, user: u32, name: &str) -> Row {
        let (date, name) = (String::from("Jan  1  1970"), name.as_bytes().to_vec());
        Row {
            kind,
            mode,
            links: 1,
            user,
            group: 0,
            size,
            date,
            name,
            target: None,
        }
    }

    #[test]
    fn modes() {
        assert_eq!(mode_text(Kind::Regular, 0o644), "-rw-r--r--");
        assert_eq!(mode_text(Kind::Directory, 0o1777), "drwxrwxrwt");
        assert_eq!(mode_text(Kind::Symlink, 0o777), "lrwxrwxrwx");
        assert_eq!(mode_text(Kind::Other, 0o6644), "?rwSr-Sr--");
        assert_eq!(mode_text(Kind::BlockDevice, 0o660), "brw-rw----");
        assert_eq!(mode_text(Kind::Regular, 0o4755), "-rwsr-xr-x");
    }

    #[test]
    fn columns_are_aligned() {
        let mut link = row(Kind::Symlink, 0o777, 5, 1000, "l");
        link.target = Some(b"where".to_vec());
        let lines = long_lines(&[row(Kind::Regular, 0o644, 12_345, 0, "file"), link]);
        let expected = "-rw-r--r-- 1 root root 12345 Jan  1  1970 file\n\
                        lrwxrwxrwx 1 1000 root     5 Jan  1  1970 l -> where\n";
        assert_eq!(String::from_utf8(lines).unwrap(), expected);
        assert!(long_lines(&[]).is_empty());
    }
}
