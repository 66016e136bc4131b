//! Returns the owner of a file, directory or link, and who may do what with it.

use sandbox::{FileAccess, FileKind, Follow, Metadata};

use crate::context::Context;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::remove::inside_target;

/// Asks for owner, group and permission bits; a link reports itself.
#[derive(Debug)]
pub struct Permissions {
    /// What to look at.
    pub place: Place,
}

/// Who owns it and who may do what.
#[derive(Debug)]
pub struct PermissionStatus {
    /// The resolved path.
    pub path: String,
    /// The owner's name, or its number if it has no name.
    pub owner: String,
    /// The group's name, or its number if it has no name.
    pub group: String,
    /// The bits as four octal digits.
    pub mode: String,
    /// The bits as `ls` shows them.
    pub mode_string: String,
    /// What this process may do with it.
    pub access: FileAccess,
    /// The facts behind it.
    pub metadata: Metadata,
}

impl Operation for Permissions {
    type Outcome = PermissionStatus;

    fn run(self, context: &Context) -> Result<PermissionStatus> {
        context.cancel.check()?;
        let (located, metadata) = self.place.existing(Follow::Never, Wanted::File)?;
        if metadata.kind == FileKind::Symlink {
            inside_target(&located)?;
        }
        let named = |name: Option<&str>, number: u32| {
            name.map_or_else(|| number.to_string(), str::to_owned)
        };
        Ok(PermissionStatus {
            path: located.path(),
            owner: named(context.users.user(metadata.uid), metadata.uid),
            group: named(context.users.group(metadata.gid), metadata.gid),
            mode: format!("{:04o}", metadata.mode),
            mode_string: mode_string(metadata.kind, metadata.mode),
            access: located.access(),
            metadata,
        })
    }
}

/// Writes kind and bits as `ls` does.
fn mode_string(kind: FileKind, mode: u32) -> String {
    let mut text = String::with_capacity(10);
    text.push(kind_letter(kind));
    text.push_str(&triple(mode >> 6, mode & 0o4000 != 0, 's'));
    text.push_str(&triple(mode >> 3, mode & 0o2000 != 0, 's'));
    text.push_str(&triple(mode, mode & 0o1000 != 0, 't'));
    text
}

fn kind_letter(kind: FileKind) -> char {
    match kind {
        FileKind::File => '-',
        FileKind::Directory => 'd',
        FileKind::Symlink => 'l',
        FileKind::Fifo => 'p',
        FileKind::Socket => 's',
        FileKind::CharDevice => 'c',
        FileKind::BlockDevice => 'b',
        FileKind::Unknown => '?',
    }
}

/// Writes three letters for three bits; a special bit replaces `x`, in capitals if `x` is not set.
fn triple(bits: u32, special: bool, letter: char) -> String {
    let flag = |bit: u32, letter: char| if bits & bit != 0 { letter } else { '-' };
    let last = match (special, bits & 1 != 0) {
        (false, _) => flag(1, 'x'),
        (true, true) => letter,
        (true, false) => letter.to_ascii_uppercase(),
    };
    [flag(4, 'r'), flag(2, 'w'), last].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};

    #[test]
    fn modes_read_as_ls_writes_them() {
        let cases = [
            (FileKind::File, 0o0644, "-rw-r--r--"),
            (FileKind::Directory, 0o1777, "drwxrwxrwt"),
            (FileKind::Directory, 0o1776, "drwxrwxrwT"),
            (FileKind::File, 0o4755, "-rwsr-xr-x"),
            (FileKind::File, 0o4655, "-rwSr-xr-x"),
            (FileKind::File, 0o2745, "-rwxr-Sr-x"),
            (FileKind::Symlink, 0o0777, "lrwxrwxrwx"),
            (FileKind::Fifo, 0o0000, "p---------"),
        ];
        for (kind, mode, expected) in cases {
            assert_eq!(mode_string(kind, mode), expected, "{mode:o}");
        }
    }

    #[test]
    fn owner_group_and_bits_are_told() {
        let tree = Tree::new();
        tree.file("script", "")
            .set_mode("script", 0o4755)
            .link("link", "script");
        tree.link("out", "../outside/secret");
        let ask = |path| {
            Permissions {
                place: tree.place(path),
            }
            .run(&context())
        };
        let status = ask("script").unwrap();
        assert_eq!(status.mode.as_str(), "4755");
        assert_eq!(status.mode_string.as_str(), "-rwsr-xr-x");
        assert!(status.access.executable && !status.owner.is_empty() && !status.group.is_empty());
        assert_eq!(ask("link").unwrap().mode_string, "lrwxrwxrwx");
        assert_eq!(ask("out").unwrap_err().kind(), ErrorKind::Outside);
        assert_eq!(ask("none").unwrap_err().kind(), ErrorKind::NotFound);
        assert!(ask("").unwrap().mode_string.starts_with('d'));
    }

    #[test]
    fn owners_without_a_name_are_numbers() {
        let tree = Tree::new();
        tree.file("file", "");
        if tree.give_away("file", 54_321, 54_322) {
            let status = Permissions {
                place: tree.place("file"),
            }
            .run(&context())
            .unwrap();
            assert_eq!(status.owner.as_str(), "54321");
            assert_eq!(status.group.as_str(), "54322");
        }
    }
}
