//! Writes several files: all of them, or none.

use sandbox::{Metadata, Staged};

use crate::context::Context;
use crate::edit::{Edited, StagedFiles, refuse_twice};
use crate::error::{Error, RequestPart, Result};
use crate::operation::{Operation, again_if_full, again_if_vanished};
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::syntax;
use crate::text::pieces::{Pieces, SharedSplice};
use crate::write::{WriteEffect, WriteMode, Written};

/// What to write to one of several files.
#[derive(Debug)]
pub struct FileToWrite {
    /// The file; links are followed.
    pub place: Place,
    /// What to write.
    pub bytes: Vec<u8>,
    /// What happens to an existing file.
    pub mode: WriteMode,
}

/// Writes several files; missing directories on the way are made.
#[derive(Debug)]
pub struct WriteFiles {
    /// The files.
    pub files: Vec<FileToWrite>,
}

impl Operation for WriteFiles {
    type Outcome = Vec<Written>;

    fn run(self, context: &Context) -> Result<Vec<Written>> {
        let places: Vec<Place> = self.files.iter().map(|file| file.place.clone()).collect();
        again_if_full(&places, || {
            again_if_vanished(|| self.try_run(&places, context))
        })
    }
}

impl WriteFiles {
    fn try_run(&self, places: &[Place], context: &Context) -> Result<Vec<Written>> {
        let (turn, edited) =
            Edited::begin_all(places, RequestPart::Files, Place::file_to_write, context)?;
        refuse_twice(&edited, RequestPart::Files)?;
        let mut written = Vec::with_capacity(self.files.len());
        let mut staged = StagedFiles::default();
        for (file, edited) in self.files.iter().zip(&edited) {
            staged.push(edited, file.stage(edited)?);
            written.push((file, edited, file.fault(edited, context)?));
        }
        let described = written.into_iter().zip(staged.commit_all(&turn)?);
        let described = described
            .map(|((file, edited, fault), metadata)| file.written(edited, fault, metadata));
        Ok(described.collect())
    }
}

impl FileToWrite {
    /// Writes the new content, not visible yet.
    fn stage(&self, edited: &Edited<'_>) -> Result<Staged> {
        if !edited.exists() {
            return edited.stage_content(&self.bytes);
        }
        match self.mode {
            WriteMode::CreateOnly => Err(Error::AlreadyExists {
                path: edited.path(),
                kind: sandbox::FileKind::File,
            }),
            WriteMode::Overwrite => {
                edited.open_to_replace()?;
                edited.stage_content(&self.bytes)
            }
            WriteMode::Append => self.stage_longer(edited),
        }
    }

    fn stage_longer(&self, edited: &Edited<'_>) -> Result<Staged> {
        let size = edited.open()?.metadata.size;
        let mut pieces = Pieces::whole(size);
        pieces.splice(&[SharedSplice {
            range: size..size,
            new: self.bytes.as_slice().into(),
        }]);
        edited.stage_pieces(&pieces)
    }

    fn fault(&self, edited: &Edited<'_>, context: &Context) -> Result<Option<syntax::SyntaxFault>> {
        // A file that may not be read is not reported on.
        let before = || {
            let read = |open| read_up_to(open, 0, syntax::PARSED_MAX + 1, &context.cancel).ok();
            Ok(edited.opened().and_then(read))
        };
        let after = || match self.mode {
            WriteMode::Append => Ok([before()?.unwrap_or_default(), self.bytes.clone()].concat()),
            WriteMode::Overwrite | WriteMode::CreateOnly => Ok(self.bytes.clone()),
        };
        let kept = match self.mode {
            WriteMode::Append => edited.opened().map_or(0, |open| open.metadata.size),
            WriteMode::Overwrite | WriteMode::CreateOnly => 0,
        };
        let size = kept.saturating_add(self.bytes.len() as u64);
        syntax::new_fault(&edited.path(), &before, (&after, size), context)
    }

    fn written(
        &self,
        edited: &Edited<'_>,
        fault: Option<syntax::SyntaxFault>,
        metadata: Metadata,
    ) -> Written {
        Written {
            path: edited.path(),
            bytes_written: self.bytes.len() as u64,
            effect: match (edited.exists(), self.mode) {
                (false, _) => WriteEffect::Created,
                (true, WriteMode::Append) => WriteEffect::Appended,
                (true, _) => WriteEffect::Replaced,
            },
            version: edited.version(&metadata, self.whole_content()),
            metadata,
            fault,
        }
    }

    /// The file's content afterwards, if this call wrote all of it.
    fn whole_content(&self) -> Option<&[u8]> {
        match self.mode {
            WriteMode::Append => None,
            WriteMode::Overwrite | WriteMode::CreateOnly => Some(&self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, context};

    fn file(tree: &Tree, path: &str, text: &str, mode: WriteMode) -> FileToWrite {
        FileToWrite {
            place: tree.place(path),
            bytes: text.as_bytes().to_vec(),
            mode,
        }
    }

    #[test]
    fn all_files_are_written() {
        let tree = Tree::with(&[("old", "old\n"), ("log", "1\n")]);
        tree.set_mode("old", 0o640);
        let files = vec![
            file(&tree, "new/a", "a", WriteMode::CreateOnly),
            file(&tree, "new/b.json", "{", WriteMode::Overwrite),
            file(&tree, "old", "new\n", WriteMode::Overwrite),
            file(&tree, "log", "2\n", WriteMode::Append),
        ];
        let written = WriteFiles { files }.run(&context()).unwrap();
        let effects: Vec<_> = written
            .iter()
            .map(|written| (written.effect, written.fault.is_some()))
            .collect();
        assert_eq!(
            effects,
            [
                (WriteEffect::Created, false),
                (WriteEffect::Created, true),
                (WriteEffect::Replaced, false),
                (WriteEffect::Appended, false),
            ]
        );
        assert_eq!(tree.read("new/a"), "a");
        assert_eq!(tree.read("new/b.json"), "{");
        assert_eq!(tree.read("old"), "new\n");
        assert_eq!(tree.mode("old"), 0o640);
        assert_eq!(tree.read("log"), "1\n2\n");
    }

    #[test]
    fn one_that_cannot_be_written_refuses_all() {
        let tree = Tree::with(&[("old", "old\n")]);
        tree.directory("dir").link("link", "old");
        for (path, mode, kind) in [
            ("old", WriteMode::CreateOnly, ErrorKind::AlreadyExists),
            ("dir", WriteMode::Overwrite, ErrorKind::IsADirectory),
            ("../outside/x", WriteMode::Overwrite, ErrorKind::Outside),
            ("old/below", WriteMode::Overwrite, ErrorKind::NotADirectory),
        ] {
            let files = vec![
                file(&tree, "made/here", "x", WriteMode::Overwrite),
                file(&tree, path, "x", mode),
            ];
            let failure = WriteFiles { files }.run(&context()).unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}");
            assert_eq!(tree.read("old"), "old\n", "{path}");
            assert!(!tree.has("made"), "{path}");
        }
        let files = vec![
            file(&tree, "old", "x", WriteMode::Overwrite),
            file(&tree, "link", "y", WriteMode::Overwrite),
        ];
        let failure = WriteFiles { files }.run(&context()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::InvalidArgument);
        assert_eq!(tree.read("old"), "old\n");
    }
}
