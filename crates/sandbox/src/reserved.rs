//! The reserved name: `.mcp-filesystem` at any depth belongs to this server, which keeps its own data of a root there.
//!
//! No look-up finds it, by whatever spelling, and no listing, walk or copy shows it. A root may lie inside another, so this
//! holds in every directory.

use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use crate::leftovers::is_temporary;
use crate::metadata::Metadata;
use crate::name::Name;
use crate::syscall;

/// The name itself.
const RESERVED: &str = ".mcp-filesystem";

/// The reserved name as an entry.
pub(crate) fn reserved_name() -> Option<Name> {
    Name::new(RESERVED.as_bytes())
}

/// Tells whether a name is the reserved one. File systems that fold case find it by any case, so case does not count.
pub(crate) fn is_reserved(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(RESERVED.as_bytes())
}

/// Tells whether a path inside a root leads below the reserved name, where no client sees anything.
#[must_use]
pub fn is_out_of_sight(path: &Path) -> bool {
    let mut names = path.components();
    let has_steps_up = names.clone().any(|name| name == Component::ParentDir);
    !has_steps_up && names.any(|name| is_reserved(name.as_os_str().as_bytes()))
}

/// Tells whether a name is ours: the reserved one, or that of something temporary, which no listing shows and the next sweep
/// may remove. No look-up of a client finds or makes it.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    is_reserved(name) || is_temporary(name)
}

/// Tells whether a name of a path is ours, or might lead to the reserved one, so that the path has to be walked step by step.
pub(crate) fn may_name_reserved(path: &[u8]) -> bool {
    path.split(|&byte| byte == b'/')
        .any(|name| is_ours(name) || is_doubtful(name))
}

/// Tells whether a file system might take a name for the reserved one: by a short name (`MCP-FI~1`), by a suffix that
/// it cuts off (`name.`, `name `, `name::$DATA`), or by characters that it folds to others or to nothing (`ſ`, `ﬁ`, a
/// soft hyphen).
fn is_doubtful(name: &[u8]) -> bool {
    let odd_end = matches!(name.last(), Some(b'.' | b' '));
    odd_end
        || name.iter().any(|byte| matches!(byte, b'~' | b':'))
        || (!name.is_ascii() && rest_fits(name))
}

/// Tells whether the ASCII characters of a name stand in the reserved one in the same order, so that what its other
/// characters are folded to could complete it.
fn rest_fits(name: &[u8]) -> bool {
    let mut wanted = RESERVED.bytes();
    let mut ascii = name.iter().filter(|byte| byte.is_ascii());
    ascii.all(|byte| wanted.any(|next| next == byte.to_ascii_lowercase()))
}

/// Tells whether an entry that was found by a doubtful name is the one with the reserved name.
pub(crate) fn is_reserved_entry(dir: BorrowedFd<'_>, name: &Name, found: &Metadata) -> bool {
    if !is_doubtful(name.as_bytes()) {
        return false;
    }
    let reserved = reserved_name().and_then(|name| syscall::stat_at_unchecked(dir, &name).ok());
    reserved.is_some_and(|reserved| reserved.same_file(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_reserved_and_nothing_else() {
        for name in [".mcp-filesystem", ".MCP-FileSystem"] {
            assert!(is_reserved(name.as_bytes()), "{name}");
        }
        for name in [
            "mcp-filesystem",
            ".mcp-filesystems",
            ".mcp-filesystem-1-2-3.tmp",
        ] {
            assert!(!is_reserved(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_a_file_system_could_take_for_it_is_doubtful() {
        for name in [
            "MCP-FI~1",
            ".mcp-filesystem.",
            ".mcp-filesystem ",
            ".mcp-filesystem::$DATA",
            ".mcp-fileſystem",
            ".mcp-ﬁlesystem",
            ".mcp-\u{ad}filesystem",
            "．ｍｃｐ－ｆｉｌｅｓｙｓｔｅｍ",
        ] {
            assert!(
                may_name_reserved(format!("a/{name}/b").as_bytes()),
                "{name}"
            );
        }
        for name in ["src", "café", "日本.txt", "Übersicht", ".mcp", "..."] {
            let path = format!("a/{name}x/b");
            assert!(!may_name_reserved(path.as_bytes()), "{name}");
        }
    }
}
