//! Names with one slash between each two: what one `openat2` may look up.

use std::borrow::Cow;
use std::ffi::{CStr, CString};

/// Names with one slash between each two, and nothing else. If no link is followed, such a path can only lead down.
///
/// Security: every `openat2` of this crate takes one, so that none can be given a `..` or a slash at its beginning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamePath<'a>(Cow<'a, CStr>);

impl<'a> NamePath<'a> {
    /// Takes names as system calls take them; `None` if there is none, or anything but one slash is between them.
    pub(crate) fn new(path: impl Into<Cow<'a, CStr>>) -> Option<NamePath<'a>> {
        let path = path.into();
        is_names(path.to_bytes()).then_some(NamePath(path))
    }

    /// Takes a path that was looked up, or names that were joined.
    pub(crate) fn copied(path: &[u8]) -> Option<NamePath<'static>> {
        NamePath::new(CString::new(path).ok()?)
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        &self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.to_bytes()
    }
}

/// Tells whether bytes are names with one slash between each two.
fn is_names(bytes: &[u8]) -> bool {
    bytes
        .split(|&b| b == b'/')
        .all(|piece| !matches!(piece, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_taken() {
        for path in [&b"a"[..], b"a/b", b"...", b"..a/b..", b".a", b"\xff/a b"] {
            assert!(NamePath::copied(path).is_some(), "{path:?}");
        }
        for path in [
            &b""[..],
            b"/",
            b"/a",
            b"a/",
            b"a//b",
            b".",
            b"..",
            b"a/..",
            b"../a",
            b"a/./b",
            b"a\0b",
        ] {
            assert!(NamePath::copied(path).is_none(), "{path:?}");
        }
    }
}
