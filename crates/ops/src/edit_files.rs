//! Edits text files by replacing strings: all edits of all files, or none.

use std::collections::HashMap;

use sandbox::Metadata;

use crate::byte_budget::COPIES;
use crate::checked_read::CheckedRead;
use crate::context::Context;
use crate::edit::{BatchTurn, Edited, StagedFiles, WHOLE_FILE_MAX};
use crate::error::{EditFault, Error, RequestPart, Result};
use crate::operation::{Operation, again_if_full, again_if_vanished};
use crate::place::Place;
use crate::read_at::{read_up_to, reader};
use crate::syntax::{self, SyntaxFault};
use crate::text::ReadAt;
use crate::text::excerpts::{ChangedLines, changed_lines_from};
use crate::text::line_diff::unified;
use crate::text::line_index::Mark;
use crate::text::pieces::{Pieces, SharedSplice};
use crate::text::replace::{EditMatching, EditPlan, EditRoom, EditScope, REPLACED_MAX, plan};
use crate::version::Version;
use crate::write::WriteEffect;

/// The largest file that a diff is made of.
const DIFFED_MAX: u64 = 4 * 1024 * 1024;
/// The most of a file that is copied to find what an edit may have meant.
const COPIED_MAX: u64 = 8 * 1024 * 1024;
/// How many changes of a call are shown.
pub const CHANGES_SHOWN: usize = 10;

/// One edit of one file.
#[derive(Debug, Clone)]
pub struct FileEdit {
    /// The file; links are followed.
    pub place: Place,
    /// The text to replace. An empty one creates a missing file.
    pub old: String,
    /// The replacement.
    pub new: String,
    /// How many places it applies to.
    pub scope: EditScope,
    /// What may match if `old` is not there.
    pub matching: EditMatching,
}

/// Whether files are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rehearsal {
    /// Everything is checked and nothing is changed.
    Only,
    /// Files are changed.
    None,
}

/// Edits files, in the order of the edits.
#[derive(Debug)]
pub struct EditFiles {
    /// The edits. Each sees what those before it did.
    pub edits: Vec<FileEdit>,
    /// Whether files are changed.
    pub rehearsal: Rehearsal,
    /// How many lines around each change a unified diff shows, if one is wanted.
    pub diff_context: Option<usize>,
}

/// The edits were made, or could be.
#[derive(Debug)]
pub struct EditedFiles {
    /// The files, in the order of their first edits.
    pub files: Vec<EditedFile>,
    /// The edits, from 1, whose places differ from `old` in what cannot be seen.
    pub folded: Vec<usize>,
}

/// A file after its edits.
#[derive(Debug)]
pub struct EditedFile {
    /// The resolved path.
    pub path: String,
    /// How many places were replaced.
    pub replaced: u64,
    /// Whether it is new.
    pub effect: WriteEffect,
    /// Its size in bytes.
    pub size: u64,
    /// Its version now, if the caller wants it and the file was changed.
    pub version: Option<Version>,
    /// The first changes, as the file has them now.
    pub changes: Vec<ChangedLines>,
    /// The parse error that the edit introduced, in a file of a known format.
    pub fault: Option<SyntaxFault>,
    /// The hunks of a unified diff, with `\n` for every line end, if one is wanted and the file is not too large.
    pub diff: Option<String>,
}

impl Operation for EditFiles {
    type Outcome = EditedFiles;

    fn run(self, context: &Context) -> Result<EditedFiles> {
        let (places, place_of) = self.places();
        again_if_full(&places, || {
            again_if_vanished(|| self.try_run(&places, &place_of, context))
        })
    }
}

impl EditFiles {
    /// The places without repetition, and which of them each edit is for: a place that is looked up is held open.
    fn places(&self) -> (Vec<Place>, Vec<usize>) {
        let mut places: Vec<Place> = Vec::new();
        let mut place_of = Vec::with_capacity(self.edits.len());
        for edit in &self.edits {
            let known = places.iter().position(|known| known.is_same(&edit.place));
            place_of.push(known.unwrap_or(places.len()));
            if known.is_none() {
                places.push(edit.place.clone());
            }
        }
        (places, place_of)
    }

    fn try_run(
        &self,
        places: &[Place],
        place_of: &[usize],
        context: &Context,
    ) -> Result<EditedFiles> {
        let (turn, edited) =
            Edited::begin_all(places, RequestPart::Edits, Place::file_to_edit, context)?;
        let of_edits = place_of.iter().filter_map(|index| edited.get(*index));
        let work = self.plan_all(of_edits, context)?;
        let described = work
            .files
            .iter()
            .map(|file| file.describe(self.diff_context));
        let mut files: Vec<EditedFile> = described.collect::<Result<_>>()?;
        if self.rehearsal == Rehearsal::None {
            let committed = work.commit(&turn)?.into_iter().zip(&work.files);
            for (file, (metadata, work)) in files.iter_mut().zip(committed) {
                file.size = metadata.size;
                file.version = work.edited.version(&metadata, None);
            }
        }
        Ok(EditedFiles {
            files,
            folded: work.folded,
        })
    }

    fn plan_all<'e, 'a>(
        &self,
        edited: impl Iterator<Item = &'e Edited<'a>>,
        context: &'e Context,
    ) -> Result<Work<'e, 'a>> {
        let mut work = Work::default();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut room = ROOM;
        for (number, (edit, edited)) in (1..).zip(self.edits.iter().zip(edited)) {
            let at = *known.entry(edited.key()).or_insert(work.files.len());
            if at == work.files.len() {
                work.files.push(FileWork::begin(edited, context));
            }
            let Some(file) = work.files.get_mut(at) else {
                continue;
            };
            let refused = |fault| Error::EditRefused {
                path: edited.path(),
                edit: number,
                edits: self.edits.len(),
                fault,
            };
            if file.apply(edit, &mut room)?.map_err(refused)? {
                work.folded.push(number);
            }
        }
        Ok(work)
    }
}

/// What the edits of one call may do together.
const ROOM: EditRoom = EditRoom {
    places: REPLACED_MAX as u64,
    bytes: WHOLE_FILE_MAX,
    length: WHOLE_FILE_MAX,
};

/// Everything that a call will do.
#[derive(Default)]
struct Work<'e, 'a> {
    files: Vec<FileWork<'e, 'a>>,
    folded: Vec<usize>,
}

impl Work<'_, '_> {
    /// Writes all files, then makes them seen.
    fn commit(&self, turn: &BatchTurn) -> Result<Vec<Metadata>> {
        let mut staged = StagedFiles::default();
        for file in &self.files {
            staged.push(file.edited, file.edited.stage_pieces(&file.pieces)?);
        }
        staged.commit_all(turn)
    }
}

/// One file and what its edits made of it so far.
struct FileWork<'e, 'a> {
    edited: &'e Edited<'a>,
    context: &'e Context,
    /// Whether the file exists or an edit created it.
    exists: bool,
    /// Whether the file is known to be text.
    checked: bool,
    /// Where its lines are, from the pass that saw it: so they are not counted in another.
    marks: Vec<Mark>,
    pieces: Pieces,
    replaced: u64,
}

impl<'e, 'a> FileWork<'e, 'a> {
    fn begin(edited: &'e Edited<'a>, context: &'e Context) -> FileWork<'e, 'a> {
        FileWork {
            edited,
            context,
            exists: edited.exists(),
            checked: false,
            marks: Vec::new(),
            pieces: Pieces::whole(0),
            replaced: 0,
        }
    }

    /// Makes an edit or says why not; returns whether its place differs only in invisible characters.
    fn apply(&mut self, edit: &FileEdit, room: &mut EditRoom) -> Result<Result<bool, EditFault>> {
        let planned = if edit.old.is_empty() {
            Ok(self.plan_new(edit))
        } else {
            self.plan(edit, *room)
        };
        Ok(planned?.map(|plan| {
            room.take(&plan);
            self.replaced += plan.splices.len() as u64;
            self.pieces.splice(&plan.splices);
            plan.folded
        }))
    }

    fn plan_new(&mut self, edit: &FileEdit) -> Result<EditPlan, EditFault> {
        if std::mem::replace(&mut self.exists, true) {
            return Err(EditFault::Exists);
        }
        Ok(EditPlan {
            splices: vec![SharedSplice {
                range: 0..0,
                new: edit.new.as_bytes().into(),
            }],
            folded: false,
        })
    }

    fn plan(&mut self, edit: &FileEdit, room: EditRoom) -> Result<Result<EditPlan, EditFault>> {
        if !self.edited.exists() && self.exists {
            // An earlier edit created the file.
            return self.plan_with(&mut |_, _| Ok(0), edit, room);
        }
        let open = self.edited.open()?;
        if self.checked {
            return self.plan_with(&mut reader(open, &self.context.cancel), edit, room);
        }
        // If the place of an edit is not found, copies of the text are searched.
        let copied = open.metadata.size.min(COPIED_MAX);
        let spare = self.context.spare_room(copied.saturating_mul(COPIES));
        if spare.is_none() {
            self.context.take_room(copied)?;
        }
        self.pieces = Pieces::whole(open.metadata.size);
        let mut check = CheckedRead::new(self.edited, open);
        let mut base = reader(open, &self.context.cancel);
        let planned = self.plan_with(
            &mut |offset, buffer| check.pass(offset, base(offset, buffer)?, buffer),
            edit,
            room,
        )?;
        check.finish()?;
        self.marks = check.marks;
        self.checked = true;
        Ok(planned)
    }

    fn plan_with(
        &self,
        base: &mut ReadAt<'_>,
        edit: &FileEdit,
        room: EditRoom,
    ) -> Result<Result<EditPlan, EditFault>> {
        let mut read = |offset, buffer: &mut [u8]| {
            // Text inserted by earlier edits is not in a file, so this is the only check whether to stop.
            self.context.cancel.check_and_give_way()?;
            self.pieces.read(base, offset, buffer)
        };
        let size = self.pieces.length();
        let wanted = (edit.scope, edit.matching);
        plan(&mut read, size, (&edit.old, &edit.new), wanted, room)
    }

    fn describe(&self, diff_context: Option<usize>) -> Result<EditedFile> {
        let path = self.edited.path();
        let fault = syntax::new_fault(
            &path,
            &|| self.before(),
            (&|| self.after(), self.pieces.length()),
            self.context,
        )?;
        Ok(EditedFile {
            replaced: self.replaced,
            effect: if self.edited.exists() {
                WriteEffect::Replaced
            } else {
                WriteEffect::Created
            },
            size: self.pieces.length(),
            version: None,
            changes: self.changes()?,
            fault,
            path,
            diff: match diff_context {
                Some(context) => self.diff(context)?,
                None => None,
            },
        })
    }

    /// How the file differs from what it was.
    fn diff(&self, context: usize) -> Result<Option<String>> {
        let size = match self.edited.exists() {
            true => self.edited.open()?.metadata.size,
            false => 0,
        };
        if size.max(self.pieces.length()) > DIFFED_MAX {
            return Ok(None);
        }
        let mut old = vec![0; usize::try_from(size).unwrap_or(0)];
        let mut new = vec![0; usize::try_from(self.pieces.length()).unwrap_or(0)];
        if self.edited.exists() {
            let count = reader(self.edited.open()?, &self.context.cancel)(0, &mut old)?;
            old.truncate(count);
        }
        let count = self.read(0, &mut new)?;
        new.truncate(count);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        Ok(Some(unified(&text(&old), &text(&new), context)))
    }

    /// The old content, if it is small enough to be parsed.
    fn before(&self) -> Result<Option<Vec<u8>>> {
        if !self.edited.exists() {
            return Ok(None);
        }
        let open = self.edited.open()?;
        read_up_to(open, 0, syntax::PARSED_MAX + 1, &self.context.cancel).map(Some)
    }

    /// The new content.
    fn after(&self) -> Result<Vec<u8>> {
        let size = self.pieces.length().min(syntax::PARSED_MAX + 1);
        let mut text = vec![0; usize::try_from(size).unwrap_or(0)];
        let count = self.read(0, &mut text)?;
        text.truncate(count);
        Ok(text)
    }

    fn changes(&self) -> Result<Vec<ChangedLines>> {
        let mut changes = self.pieces.changes();
        changes.truncate(CHANGES_SHOWN);
        // Before the first change the content is the file's.
        let first = changes.first().map_or(0, |change| change.start);
        let known = self.marks.partition_point(|mark| mark.offset <= first);
        let start = known.checked_sub(1).and_then(|last| self.marks.get(last));
        let start = start.copied().unwrap_or_default();
        changed_lines_from(
            &mut |offset, buffer| self.read(offset, buffer),
            start,
            &changes,
        )
    }

    /// Reads the new content.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        if self.edited.exists() {
            let mut base = reader(self.edited.open()?, &self.context.cancel);
            self.pieces.read(&mut base, offset, buffer)
        } else {
            self.pieces.read(&mut |_, _| Ok(0), offset, buffer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn edit(tree: &Tree, path: &str, old: &str, new: &str) -> FileEdit {
        FileEdit {
            place: tree.place(path),
            old: old.to_owned(),
            new: new.to_owned(),
            scope: EditScope::Unique,
            matching: EditMatching::Unseen,
        }
    }

    fn run(edits: Vec<FileEdit>) -> Result<EditedFiles> {
        let rehearsal = Rehearsal::None;
        EditFiles {
            edits,
            rehearsal,
            diff_context: None,
        }
        .run(&context())
    }

    #[test]
    fn edits_of_several_files_are_made_in_order() {
        let tree = Tree::with(&[("a", "one\ntwo\n"), ("dir/b", "three\n")]);
        tree.set_mode("a", 0o640).link("link", "a");
        let edited = run(vec![
            edit(&tree, "a", "one", "1"),
            edit(&tree, "dir/b", "three", "3"),
            edit(&tree, "link", "1\ntwo", "1 2"),
            edit(&tree, "new/dir/c", "", "made\n"),
            edit(&tree, "new/dir/c", "made", "changed"),
            edit(&tree, "new/dir/d", "", ""),
        ])
        .unwrap();
        let files: Vec<_> = edited
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.replaced, file.effect, file.size))
            .collect();
        assert_eq!(
            files,
            [
                ("a", 2, WriteEffect::Replaced, 4),
                ("dir/b", 1, WriteEffect::Replaced, 2),
                ("new/dir/c", 2, WriteEffect::Created, 8),
                ("new/dir/d", 1, WriteEffect::Created, 0),
            ]
        );
        assert_eq!(tree.read("a"), "1 2\n");
        assert_eq!(tree.mode("a"), 0o640);
        assert_eq!(tree.read("dir/b"), "3\n");
        assert_eq!(tree.read("new/dir/c"), "changed\n");
        assert_eq!(tree.read_link("link"), "a");
    }

    #[test]
    fn one_edit_that_does_not_fit_refuses_all() {
        let tree = Tree::with(&[("a", "one\n"), ("b", "two two\n")]);
        tree.file("bytes", b"caf\xe9\n")
            .file("wide", b"\xff\xfea\0")
            .directory("dir");
        for (path, old, kind) in [
            ("b", "two", ErrorKind::EditRefused),
            ("b", "three", ErrorKind::EditRefused),
            ("b", "", ErrorKind::EditRefused),
            ("bytes", "caf", ErrorKind::NotText),
            ("wide", "a", ErrorKind::NotText),
            ("dir", "a", ErrorKind::IsADirectory),
            ("none", "a", ErrorKind::NotFound),
            ("../outside/secret", "secret", ErrorKind::Outside),
        ] {
            let failure = run(vec![
                edit(&tree, "a", "one", "1"),
                edit(&tree, "made/here", "", "x"),
                edit(&tree, path, old, "x"),
            ]);
            assert_eq!(failure.unwrap_err().kind(), kind, "{path} {old}");
            assert_eq!(tree.read("a"), "one\n", "{path}");
            assert!(!tree.has("made"), "{path}");
            assert!(!tree.has("none"), "{path}");
        }
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn a_rehearsal_changes_nothing() {
        let tree = Tree::with(&[("a.json", "{\"a\": 1}\n")]);
        let edits = vec![edit(&tree, "a.json", "1", "}"), edit(&tree, "b", "", "x")];
        let rehearsal = Rehearsal::Only;
        let edited = EditFiles {
            edits,
            rehearsal,
            diff_context: None,
        }
        .run(&context())
        .unwrap();
        let fault = edited.files[0].fault.as_ref().unwrap();
        assert_eq!(fault.language, "JSON");
        assert_eq!(fault.line, Some(1));
        assert_eq!(edited.files[0].changes[0].lines, ["{\"a\": }}"]);
        assert_eq!(tree.read("a.json"), "{\"a\": 1}\n");
        assert!(!tree.has("b"));
    }

    #[test]
    fn large_files_keep_what_is_around() {
        let tree = Tree::new();
        let (before, after) = ("a\r\n".repeat(1_000_000), "é".repeat(1_500_000));
        tree.file("large", format!("{before}needle{after}"));
        let edited = run(vec![
            edit(&tree, "large", "a\nneedle", "a\nthread\nand needle"),
            edit(&tree, "large", "thread", "THREAD"),
        ])
        .unwrap();
        assert_eq!(edited.files[0].changes[0].first, 1_000_000);
        assert!(tree.read("large") == format!("{before}THREAD\r\nand needle{after}"));
    }

    #[test]
    fn a_file_of_a_hundred_megabytes_is_edited_and_a_larger_one_is_not() {
        let tree = Tree::new();
        let (before, after) = (
            "line\r\n".repeat(8_000_000),
            "\u{e9}t\u{e9}\n".repeat(8_000_000),
        );
        tree.file("large", format!("\u{feff}{before}needle{after}last"));
        run(vec![
            edit(&tree, "large", "line\nneedle", "line\nthread\nneedle"),
            edit(&tree, "large", "last", "end"),
        ])
        .unwrap();
        let expected = format!("\u{feff}{before}thread\r\nneedle{after}end");
        assert!(tree.read("large") == expected);
        tree.sparse_file("larger", crate::WHOLE_FILE_MAX + 1);
        let refused = run(vec![edit(&tree, "larger", "a", "b")]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TooLarge);
    }

    #[test]
    fn many_places_of_a_large_file() {
        let tree = Tree::new();
        tree.file("large", "some word\n".repeat(200_000));
        let mut all = edit(&tree, "large", "word", "longer word");
        all.scope = EditScope::All;
        let edited = run(vec![all]).unwrap();
        assert_eq!(edited.files[0].replaced, 200_000);
        assert!(tree.read("large") == "some longer word\n".repeat(200_000));
        let mut all = edit(&tree, "large", "o", "0");
        all.scope = EditScope::All;
        let failure = run(vec![all]).unwrap_err();
        assert!(matches!(
            failure,
            Error::EditRefused {
                fault: EditFault::TooMany { count: 600_000, .. },
                ..
            }
        ));
    }

    #[test]
    fn what_would_become_too_long_is_refused() {
        let tree = Tree::new();
        // Each place has other line ends, so that no two can share what comes in.
        let mixed = "\r\n\n".repeat(1000);
        tree.file("mixed", &mixed);
        let mut all = edit(&tree, "mixed", "\n\n", &"line\n".repeat(200_000));
        all.scope = EditScope::All;
        let failure = run(vec![all.clone()]).unwrap_err();
        let is_too_long = |failure: &Error| match failure {
            Error::EditRefused { fault, .. } => matches!(fault, EditFault::TooLong { .. }),
            _ => false,
        };
        assert!(is_too_long(&failure), "{failure:?}");
        assert!(tree.read("mixed") == mixed);
        // A file that edits of the call make counts too.
        let grow = |old: &str, new: &str| FileEdit {
            scope: EditScope::All,
            matching: EditMatching::Unseen,
            ..edit(&tree, "new", old, new)
        };
        let failure = run(vec![
            grow("", &"a".repeat(1000)),
            grow("a", &"b".repeat(100)),
            grow("b", &"c".repeat(2000)),
        ]);
        assert!(is_too_long(&failure.unwrap_err()));
        assert!(!tree.has("new"));
    }

    #[test]
    fn cancelling_changes_nothing() {
        let tree = Tree::with(&[("a", "one\n")]);
        let edits = vec![edit(&tree, "a", "one", "1")];
        let rehearsal = Rehearsal::None;
        let failure = EditFiles {
            edits,
            rehearsal,
            diff_context: None,
        }
        .run(&cancelled())
        .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
        assert_eq!(tree.read("a"), "one\n");
    }

    #[test]
    fn edits_at_once_are_all_kept() {
        let tree = Tree::new();
        let content: String = (0..16).map(|n| format!("<{n}>\n")).collect();
        tree.file("a", &content).file("b", &content);
        std::thread::scope(|scope| {
            for n in 0..16 {
                let tree = &tree;
                let (one, two) = if n % 2 == 0 { ("a", "b") } else { ("b", "a") };
                scope.spawn(move || {
                    let old = format!("<{n}>");
                    run(vec![
                        edit(tree, one, &old, "done"),
                        edit(tree, two, &old, "done"),
                    ])
                    .unwrap();
                });
            }
        });
        assert_eq!(tree.read("a"), "done\n".repeat(16));
        assert_eq!(tree.read("b"), "done\n".repeat(16));
    }
}
