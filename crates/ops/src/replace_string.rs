//! Replaces the one place of a string in a text file.

use sandbox::Metadata;

use crate::checked_read::CheckedRead;
use crate::context::Context;
use crate::edit::Edited;
use crate::error::{Error, Result};
use crate::operation::{Operation, again_if_full};
use crate::place::Place;
use crate::read_at::reader;
use crate::text::edit::replace_unique;

/// Replaces a string that must occur exactly once.
#[derive(Debug)]
pub struct ReplaceString {
    /// The file; links are followed.
    pub place: Place,
    /// The string to replace.
    pub old: String,
    /// The replacement, literally.
    pub new: String,
}

/// The string was replaced.
#[derive(Debug)]
pub struct ReplacedString {
    /// The resolved path.
    pub path: String,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for ReplaceString {
    type Outcome = ReplacedString;

    fn run(self, context: &Context) -> Result<ReplacedString> {
        again_if_full([&self.place], || self.try_run(context))
    }
}

impl ReplaceString {
    fn try_run(&self, context: &Context) -> Result<ReplacedString> {
        let edited = Edited::begin(&self.place, context)?;
        let open = edited.open()?;
        let mut check = CheckedRead::new(&edited, open);
        let mut base = reader(open, &context.cancel);
        let mut read =
            |offset, buffer: &mut [u8]| check.pass(offset, base(offset, buffer)?, buffer);
        let found = replace_unique(&edited.path(), &mut read, &self.old, &self.new);
        // That a file is not text is said rather than what was found in it.
        match &found {
            Ok(_) | Err(Error::StringNotFound { .. } | Error::StringNotUnique { .. }) => {
                check.finish()?;
            }
            Err(Error::EmptySearchString) => drop(edited.open_text()?),
            Err(_) => {}
        }
        let splice = found?;
        let metadata = edited.splice(open, &splice)?;
        Ok(ReplacedString {
            path: edited.path(),
            metadata,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};

    fn replace(tree: &Tree, path: &str, old: &str, new: &str) -> Result<ReplacedString> {
        let (old, new) = (old.to_owned(), new.to_owned());
        ReplaceString {
            place: tree.place(path),
            old,
            new,
        }
        .run(&context())
    }

    #[test]
    fn one_place_is_replaced_and_the_rest_stays() {
        let tree = Tree::new();
        tree.file("file", "\u{feff}one\r\ntwo\nthree")
            .link("link", "file");
        let replaced = replace(&tree, "link", "two", "$& \\1").unwrap();
        assert_eq!(replaced.path.as_str(), "file");
        assert_eq!(replaced.metadata.size, 19);
        assert_eq!(tree.read("file"), "\u{feff}one\r\n$& \\1\nthree");
        assert_eq!(tree.read_link("link"), "file");
        replace(&tree, "file", "\u{feff}one\r\n", "").unwrap();
        assert_eq!(tree.read("file"), "$& \\1\nthree");
    }

    #[test]
    fn large_files_keep_what_is_around() {
        let tree = Tree::new();
        let (before, after) = ("a".repeat(3_000_000), "é".repeat(1_500_000));
        tree.file("large", format!("{before}needle{after}"));
        replace(&tree, "large", "needle", "thread and needle").unwrap();
        assert!(tree.read("large") == format!("{before}thread and needle{after}"));
    }

    #[test]
    fn failures_change_nothing() {
        let tree = Tree::new();
        tree.file("file", "a b a")
            .file("bytes", b"a\xff")
            .directory("dir");
        for (path, old, kind) in [
            ("file", "a", ErrorKind::StringNotUnique),
            ("file", "c", ErrorKind::StringNotFound),
            ("file", "", ErrorKind::InvalidArgument),
            ("bytes", "a", ErrorKind::NotText),
            ("dir", "a", ErrorKind::IsADirectory),
            ("none", "a", ErrorKind::NotFound),
            ("../outside/secret", "secret", ErrorKind::Outside),
        ] {
            let failure = replace(&tree, path, old, "x").unwrap_err();
            assert_eq!(failure.kind(), kind, "{path} {old}");
        }
        assert_eq!(tree.read("file"), "a b a");
        assert!(!tree.has("none"));
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn edits_at_once_are_all_kept() {
        let tree = Tree::new();
        let content: String = (0..32).map(|n| format!("<{n}>\n")).collect();
        tree.file("dir/file", content).link("link", "dir/file");
        std::thread::scope(|scope| {
            for n in 0..32 {
                let path = if n % 2 == 0 { "link" } else { "dir/./file" };
                let tree = &tree;
                scope.spawn(move || replace(tree, path, &format!("<{n}>"), "done").unwrap());
            }
        });
        assert_eq!(tree.read("dir/file"), "done\n".repeat(32));
    }
}
