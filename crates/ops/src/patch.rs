//! Applies a patch to a text file, or to several: all of it or nothing.

use std::sync::Arc;

use sandbox::Root;

use crate::context::{Cancel, Context};
use crate::edit::{Edited, StagedFiles, WHOLE_FILE_MAX, refuse_twice};
use crate::edit_files::CHANGES_SHOWN;
use crate::error::{Error, RequestPart, Result, Wanted};
use crate::operation::{Operation, again_if_full, again_if_vanished};
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::syntax::{self, SyntaxFault};
use crate::text;
use crate::text::excerpts::{ChangedLines, changed_lines};
use crate::text::patch::{self, Applied, FilePatch, HunkPlace};
use crate::version::Version;
use crate::write::WriteEffect;

/// The most files that one patch may change: each is held open until all are written.
const FILES_MAX: usize = 500;

/// Which files a patch is for.
#[derive(Debug)]
pub enum PatchTarget {
    /// This file, whatever name the patch gives it; links are followed.
    File(Place),
    /// Those that the patch names, in this root; their versions are returned.
    Named(Arc<Root>),
}

/// Applies a patch; missing files are made, with the directories on the way.
#[derive(Debug)]
pub struct Patch {
    /// Which files it is for.
    pub target: PatchTarget,
    /// The patch.
    pub patch: String,
}

/// A file after its part of the patch.
#[derive(Debug)]
pub struct Patched {
    /// The resolved path.
    pub path: String,
    /// Where each hunk went.
    pub hunks: Vec<HunkPlace>,
    /// Whether the file is new.
    pub effect: WriteEffect,
    /// Its size in bytes.
    pub size: u64,
    /// Its version now, if the caller wants it.
    pub version: Option<Version>,
    /// The first changes, as the file has them now.
    pub changes: Vec<ChangedLines>,
    /// Why it no longer parses.
    pub fault: Option<SyntaxFault>,
}

impl Operation for Patch {
    type Outcome = Vec<Patched>;

    fn run(self, context: &Context) -> Result<Vec<Patched>> {
        self.run_naming(context, |_| ())
    }
}

/// The names of the files that a patch changes, as it has them; also of a patch that is malformed.
#[must_use]
pub fn names_in_patch(patch: &str, cancel: &Cancel) -> Vec<String> {
    patch::read(patch, cancel).names
}

impl Patch {
    /// Runs, and hands over the names of the files before it touches them, also of a patch that is malformed.
    pub fn run_naming(
        self,
        context: &Context,
        take_names: impl FnOnce(Vec<String>),
    ) -> Result<Vec<Patched>> {
        let parsed = patch::read(&self.patch, &context.cancel);
        take_names(parsed.names);
        let files = parsed.files?;
        let places = self.places(&files)?;
        again_if_full(&places, || {
            again_if_vanished(|| try_run(&files, &places, context))
        })
    }

    /// The place of each file of the patch.
    fn places(&self, files: &[FilePatch<'_>]) -> Result<Vec<Place>> {
        let named = |file: &FilePatch<'_>| {
            let name = file.name.as_deref();
            name.ok_or(Error::PatchFiles { files: 0 })
                .map(str::to_owned)
        };
        match &self.target {
            PatchTarget::File(_) if files.len() > 1 => {
                Err(Error::PatchFiles { files: files.len() })
            }
            PatchTarget::File(place) => Ok(vec![place.clone()]),
            PatchTarget::Named(_) if files.len() > FILES_MAX => Err(Error::PatchTooManyFiles {
                files: files.len(),
                most: FILES_MAX,
            }),
            PatchTarget::Named(root) => {
                let places = files.iter().map(|file| {
                    let place = Place::new(Arc::clone(root), &named(file)?)?;
                    Ok(place.versioned(None))
                });
                places.collect()
            }
        }
    }
}

fn try_run(files: &[FilePatch<'_>], places: &[Place], context: &Context) -> Result<Vec<Patched>> {
    let (turn, edited) =
        Edited::begin_all(places, RequestPart::Patch, Place::file_to_edit, context)?;
    refuse_twice(&edited, RequestPart::Patch)?;
    let mut patched = Vec::with_capacity(files.len());
    let mut staged = StagedFiles::default();
    for ((file, place), edited) in files.iter().zip(places).zip(&edited) {
        let (outcome, content) = patch_one(file, place, edited, context)?;
        patched.push(outcome);
        staged.push(edited, edited.stage_content(&content)?);
    }
    let committed = staged.commit_all(&turn)?.into_iter().zip(&edited);
    for (patched, (metadata, edited)) in patched.iter_mut().zip(committed) {
        patched.size = metadata.size;
        patched.version = edited.version(&metadata, None);
    }
    Ok(patched)
}

/// The result of a file's part of the patch, and the new content.
fn patch_one(
    file: &FilePatch<'_>,
    place: &Place,
    edited: &Edited<'_>,
    context: &Context,
) -> Result<(Patched, Vec<u8>)> {
    let (old, effect) = old_content(edited, context)?;
    let path = edited.path();
    let Applied {
        content,
        hunks,
        mut changes,
    } = patch::apply(&path, &old, file, &context.cancel)
        .map_err(|error| explain(place, error, effect))?;
    changes.truncate(CHANGES_SHOWN);
    let before = || Ok(edited.exists().then(|| old.clone()));
    let after = || Ok(content.clone());
    let patched = Patched {
        changes: changed_lines(&mut text::reader(&content), &changes)?,
        fault: syntax::new_fault(&path, &before, (&after, content.len() as u64), context)?,
        size: content.len() as u64,
        version: None,
        hunks,
        effect,
        path,
    };
    Ok((patched, content))
}

/// A file's content before its patch; empty if the patch creates it.
fn old_content(edited: &Edited<'_>, context: &Context) -> Result<(Vec<u8>, WriteEffect)> {
    if !edited.exists() {
        return Ok((Vec::new(), WriteEffect::Created));
    }
    let open = edited.open_text()?;
    context.take_room(open.metadata.size)?;
    let old = read_up_to(open, 0, WHOLE_FILE_MAX, &context.cancel)?;
    Ok((old, WriteEffect::Replaced))
}

/// If the lines are missing because there is no file, the path is most likely wrong.
fn explain(place: &Place, error: Error, effect: WriteEffect) -> Error {
    match error {
        Error::PatchMismatch { .. } if effect == WriteEffect::Created => {
            let missing = place.existing_file(Wanted::File);
            missing.err().unwrap_or(error)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};
    use crate::text::patch::faulty;

    fn patch(tree: &Tree, path: &str, patch: &str) -> Result<Patched> {
        let patch = Patch {
            target: PatchTarget::File(tree.place(path)),
            patch: patch.to_owned(),
        };
        let mut patched = patch.run(&context())?;
        Ok(patched.remove(0))
    }

    fn patch_named(tree: &Tree, patch: &str) -> Result<Vec<Patched>> {
        let patch = Patch {
            target: PatchTarget::Named(Arc::clone(&tree.root)),
            patch: patch.to_owned(),
        };
        patch.run(&context())
    }

    #[test]
    fn several_files_are_patched_or_none() {
        let tree = Tree::with(&[("x", "one\ntwo\nthree\n"), ("d/y", "a\n")]);
        let two = format!("{SECOND}--- a/d/y\n+++ b/d/y\n@@ -1 +1 @@\n-a\n+b\n");
        let add = "--- /dev/null\n+++ b/new/z\n@@ -0,0 +1 @@\n+made\n";
        let wrong = format!("{two}{add}--- a/d/y2\n+++ b/d/y2\n@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(
            patch_named(&tree, &wrong).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        assert_eq!(tree.read("x"), "one\ntwo\nthree\n");
        assert_eq!(tree.read("d/y"), "a\n");
        assert!(!tree.has("new"));
        let several = patch(&tree, "x", &two).unwrap_err();
        assert!(
            matches!(several, Error::PatchFiles { files: 2 }),
            "{several:?}"
        );
        let patched = patch_named(&tree, &format!("{two}{add}")).unwrap();
        let paths: Vec<&str> = patched.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["x", "d/y", "new/z"]);
        assert_eq!(tree.read("x"), "one\nTWO\nthree\n");
        assert_eq!(tree.read("d/y"), "b\n");
        assert_eq!(tree.read("new/z"), "made\n");
        let escape = "--- a/../outside/secret\n+++ b/../outside/secret\n@@ -1 +1 @@\n-secret\n+x\n";
        assert_eq!(
            patch_named(&tree, escape).unwrap_err().kind(),
            ErrorKind::Outside
        );
        let nameless = patch_named(&tree, "@@ -1 +1 @@\n-one\n+x\n").unwrap_err();
        assert!(matches!(nameless, Error::PatchFiles { files: 0 }));
        assert!(tree.outside_is_untouched());
    }

    /// The patch, the files before it, and those that it changes; none if it is refused.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);

    #[test]
    fn each_part_goes_into_its_own_file_or_nowhere() {
        const BLOCK: &str = "<<<<<<< SEARCH\nq\n=======\nZ\n>>>>>>> REPLACE\n";
        let both: &[(&str, &str)] = &[("x", "a\nq\n"), ("y", "q\n")];
        let changed: &[(&str, &str)] = &[("x", "b\nq\n"), ("y", "Z\n")];
        let hunks = "@@ -1 +1 @@\n-a\n+b\nINDEX y\n@@ -1 +1 @@\n-q\n+Z\n";
        let git = format!("diff --git a/x b/x\n{hunks}").replace("INDEX y", "diff --git a/y b/y");
        let index = format!("Index: x\n{hunks}").replace("INDEX y", "Index: y");
        let header = "--- b/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+Z\n";
        let in_b: &[(&str, &str)] = &[("x", "a\n"), ("b/x", "a\n"), ("a/x", "a\n")];
        let quoted = "--- /dev/null\n+++ \"b/caf\\303\\251.txt\"\n@@ -0,0 +1 @@\n+x\n";
        let search = |between: &str| {
            let first = BLOCK.replace("q\n", "a\n").replace('Z', "b");
            format!("x\n{first}{between}{BLOCK}")
        };
        // The counts of the first hunk are so wrong that the next header could be its lines.
        let swallowed =
            "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n--- y\n+++ y\n@@ -1 +1 @@\n-q\n+Z\n";
        let cases: &[Case<'_>] = &[
            (&git, both, changed),
            (&index, both, changed),
            (&search("\ny\n"), both, changed),
            (&search("y\n\n```\n"), both, changed),
            (&search("\n**y**:\n"), both, changed),
            (&search("Now for `y`:\n"), both, &[]),
            (&search("y\n\nThat is the other file\n"), both, &[]),
            (&search("```python ./y\n"), both, &[]),
            (&search("Then this one\n"), both, &[("x", "b\nZ\n")]),
            (&search("nowhere\n"), both, &[]),
            (swallowed, both, &[]),
            (header, in_b, &[("b/x", "Z\n")]),
            (&header.replace("b/", "a/"), in_b, &[("a/x", "Z\n")]),
            (quoted, &[], &[("café.txt", "x\n")]),
            (&quoted.replace("\\303", "\\903"), &[], &[]),
        ];
        for (patch, before, expected) in cases {
            let tree = Tree::with(before);
            let outcome = patch_named(&tree, patch);
            assert_eq!(
                outcome.is_err(),
                expected.is_empty(),
                "{outcome:?}\n{patch}"
            );
            for (path, content) in *before {
                let after = expected.iter().find(|(name, _)| name == path);
                let content = after.map_or(*content, |(_, content)| content);
                assert_eq!(tree.read(path), content, "{path}\n{patch}");
            }
            for (path, content) in *expected {
                assert_eq!(tree.read(path), *content, "{path}\n{patch}");
            }
        }
        let tree = Tree::with(both);
        for several in [&git, &index] {
            let refused = patch(&tree, "x", several).unwrap_err();
            assert!(
                matches!(refused, Error::PatchFiles { files: 2 }),
                "{refused:?}"
            );
        }
        assert_eq!(tree.read("x"), "a\nq\n");
    }

    #[test]
    fn a_patch_of_too_many_files_is_refused() {
        let tree = Tree::new();
        let add = |count: usize| -> String {
            let files = (0..count).map(|n| format!("*** Add File: {n}\n+x\n"));
            files.collect()
        };
        // Comparing each with each would take minutes.
        let refused = patch_named(&tree, &add(50_000)).unwrap_err();
        let expected = Error::PatchTooManyFiles {
            files: 50_000,
            most: FILES_MAX,
        };
        assert_eq!(refused.to_string(), expected.to_string());
        assert!(patch_named(&tree, &add(FILES_MAX + 1)).is_err());
        assert!(tree.names("").is_empty());
        assert_eq!(patch_named(&tree, &add(100)).unwrap().len(), 100);
    }

    const SECOND: &str = "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";

    #[test]
    fn patches_change_the_file_and_nothing_else() {
        let tree = Tree::new();
        tree.file("dir/file", "one\ntwo\nthree\n")
            .set_mode("dir/file", 0o640);
        let patched = patch(&tree, "dir/file", SECOND).unwrap();
        assert_eq!(patched.hunks.len(), 1);
        assert_eq!(patched.effect, WriteEffect::Replaced);
        assert_eq!(tree.read("dir/file"), "one\nTWO\nthree\n");
        assert_eq!(tree.mode("dir/file"), 0o640);
        assert_eq!(tree.names("dir"), ["file"]);
        assert_eq!(tree.names(""), ["dir"]);
        tree.file("crlf", "one\r\ntwo\r\nthree");
        patch(&tree, "crlf", SECOND).unwrap();
        assert_eq!(tree.read("crlf"), "one\r\nTWO\r\nthree");
    }

    #[test]
    fn missing_files_are_empty_ones() {
        let tree = Tree::new();
        let new = "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n";
        let patched = patch(&tree, "new/dir/file", new).unwrap();
        assert_eq!(patched.effect, WriteEffect::Created);
        assert_eq!(patched.size, 4);
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
    fn faulty_patches_that_are_refused_change_nothing() {
        for (faulty, is_applied) in faulty::all() {
            let tree = Tree::with(&[("f.py", faulty::BASE)]);
            let outcome = patch(&tree, "f.py", faulty);
            assert_eq!(outcome.is_ok(), is_applied, "{faulty}");
            assert_eq!(tree.names(""), ["f.py"], "{faulty}");
            assert_eq!(tree.read("f.py") != faulty::BASE, is_applied, "{faulty}");
        }
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
