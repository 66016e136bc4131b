//! Applies a unified diff to a text file, all of it or nothing.

use sandbox::Metadata;

use crate::context::Context;
use crate::edit::{Edited, WHOLE_FILE_MAX};
use crate::error::{Error, Result, Wanted};
use crate::operation::{Operation, again_if_vanished};
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::text::patch::{self, HunkPlace};
use crate::write::WriteEffect;

/// Applies a patch to a file; a missing one is made, with the directories on the way.
#[derive(Debug)]
pub struct Patch {
    /// The file; links are followed. The names in the patch do not count.
    pub place: Place,
    /// A unified diff.
    pub patch: String,
}

/// The patch was applied.
#[derive(Debug)]
pub struct Patched {
    /// The resolved path.
    pub path: String,
    /// Where each hunk went.
    pub hunks: Vec<HunkPlace>,
    /// Whether the file is new.
    pub effect: WriteEffect,
    /// The file as it is now.
    pub metadata: Metadata,
}

impl Operation for Patch {
    type Outcome = Patched;

    fn run(self, context: &Context) -> Result<Patched> {
        again_if_vanished(|| self.try_run(context))
    }
}

impl Patch {
    fn try_run(&self, context: &Context) -> Result<Patched> {
        let edited = Edited::begin(&self.place, context)?;
        let (old, effect) = if edited.exists() {
            let open = edited.open_text()?;
            let old = read_up_to(open, 0, WHOLE_FILE_MAX, &context.cancel)?;
            (old, WriteEffect::Replaced)
        } else {
            (Vec::new(), WriteEffect::Created)
        };
        let applied = patch::apply(&edited.path(), &old, &self.patch, &context.cancel);
        let applied = applied.map_err(|error| self.explain(error, effect))?;
        drop(old);
        let metadata = edited.replace(&applied.content)?;
        Ok(Patched {
            path: edited.path(),
            hunks: applied.hunks,
            effect,
            metadata,
        })
    }

    /// A patch of lines that are not there because there is no file most likely has a wrong path.
    fn explain(&self, error: Error, effect: WriteEffect) -> Error {
        match error {
            Error::PatchMismatch { .. } if effect == WriteEffect::Created => {
                let missing = self.place.existing_file(Wanted::File);
                missing.err().unwrap_or(error)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};

    fn patch(tree: &Tree, path: &str, patch: &str) -> Result<Patched> {
        Patch {
            place: tree.place(path),
            patch: patch.to_owned(),
        }
        .run(&context())
    }

    const SECOND: &str = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

    #[test]
    fn patches_change_the_file_and_nothing_else() {
        let tree = Tree::new();
        tree.file("dir/file", "one\ntwo\nthree\n")
            .set_mode("dir/file", 0o640);
        let patched = patch(&tree, "dir/file", SECOND).unwrap();
        assert_eq!(
            (patched.hunks.len(), patched.effect),
            (1, WriteEffect::Replaced)
        );
        assert_eq!(
            (tree.read("dir/file"), tree.mode("dir/file")),
            ("one\nTWO\nthree\n".into(), 0o640)
        );
        assert_eq!(
            (tree.names("dir"), tree.names("")),
            (vec!["file".into()], vec!["dir".into()])
        );
        tree.file("crlf", "one\r\ntwo\r\nthree");
        patch(&tree, "crlf", SECOND).unwrap();
        assert_eq!(tree.read("crlf"), "one\r\nTWO\r\nthree");
    }

    #[test]
    fn missing_files_are_empty_ones() {
        let tree = Tree::new();
        let new = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n";
        let patched = patch(&tree, "new/dir/file", new).unwrap();
        assert_eq!(
            (patched.effect, patched.metadata.size),
            (WriteEffect::Created, 4)
        );
        assert_eq!(tree.read("new/dir/file"), "a\nb\n");
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let tree = Tree::new();
        tree.file("file", "one\nother\nthree\n")
            .file("bytes", b"\xff\n")
            .directory("dir");
        assert_eq!(
            patch(&tree, "file", SECOND).unwrap_err().kind(),
            ErrorKind::PatchFailed
        );
        assert_eq!(
            patch(&tree, "file", "garbage").unwrap_err().kind(),
            ErrorKind::PatchFailed
        );
        assert_eq!(
            patch(&tree, "new/file", SECOND).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(
            patch(&tree, "bytes", SECOND).unwrap_err().kind(),
            ErrorKind::NotText
        );
        assert_eq!(
            patch(&tree, "dir", SECOND).unwrap_err().kind(),
            ErrorKind::IsADirectory
        );
        assert_eq!(tree.read("file"), "one\nother\nthree\n");
        assert_eq!(tree.names(""), ["bytes", "dir", "file"]);
    }

    #[test]
    fn huge_files_are_refused_before_they_are_read() {
        let tree = Tree::new();
        tree.sparse_file("huge", 1 << 40);
        let failure = patch(&tree, "huge", SECOND).unwrap_err();
        assert!(
            matches!(
                failure,
                Error::TooLarge {
                    limit: WHOLE_FILE_MAX,
                    ..
                }
            ),
            "{failure:?}"
        );
    }
}
