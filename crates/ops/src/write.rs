//! Writes a whole file, appends to one, or creates one that must not exist yet.

use std::io::Write as _;

use sandbox::{Located, Metadata, OnExisting, Parents};

use crate::consent::Planned;
use crate::context::Context;
use crate::edit_lock::EditLock;
use crate::error::{Error, Result, Wanted};
use crate::operation::{Operation, again_if_full, again_if_replaced, again_if_vanished};
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::syntax::{self, SyntaxFault};
use crate::version::Version;

/// How much is written between two checks of the deadline.
const PIECE: usize = 1024 * 1024;

/// What happens to an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Its content is replaced; a missing file is made.
    Overwrite,
    /// The bytes go to its end; a missing file is made.
    Append,
    /// It is an error, also in a race.
    CreateOnly,
}

/// Writes bytes to a file, whole or not at all.
#[derive(Debug)]
pub struct Write {
    /// The file; links are followed.
    pub place: Place,
    /// What to write.
    pub bytes: Vec<u8>,
    /// What happens to an existing file.
    pub mode: WriteMode,
    /// Whether missing directories on the way are made.
    pub parents: Parents,
    /// Whether a file that no longer parses is reported.
    pub syntax: SyntaxCheck,
}

/// Whether files of known languages are parsed before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyntaxCheck {
    /// They are, and a new fault is reported.
    Warn,
    /// They are not.
    Skip,
}

/// What a write did to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteEffect {
    /// It was not there before.
    Created,
    /// Its content is new.
    Replaced,
    /// It is longer than before.
    Appended,
}

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The resolved path.
    pub path: String,
    /// How many bytes this call wrote.
    pub bytes_written: u64,
    /// What that did to the file.
    pub effect: WriteEffect,
    /// The file as it is now.
    pub metadata: Metadata,
    /// Its version now, if the caller wants it.
    pub version: Option<Version>,
    /// Why it no longer parses.
    pub fault: Option<SyntaxFault>,
}

impl Operation for Write {
    type Outcome = Written;

    fn run(self, context: &Context) -> Result<Written> {
        again_if_full([&self.place], || match self.parents {
            Parents::Create => again_if_vanished(|| self.try_run(context)),
            Parents::Require => again_if_replaced(|| self.try_run(context)),
        })
    }
}

impl Write {
    fn try_run(&self, context: &Context) -> Result<Written> {
        let (lock, located) = EditLock::take(&self.place, &context.cancel)?;
        if let (WriteMode::CreateOnly, Some(metadata)) = (self.mode, located.metadata()) {
            return Err(Error::AlreadyExists {
                path: located.path(),
                kind: metadata.kind,
            });
        }
        context.cancel.check()?;
        let fault = self.fault(&located, context)?;
        let metadata = match self.mode {
            WriteMode::Append => {
                lock.confirm()?;
                self.append(&located, context)?
            }
            WriteMode::Overwrite | WriteMode::CreateOnly => {
                self.replace(&lock, &located, context)?
            }
        };
        Ok(Written {
            path: located.path(),
            bytes_written: self.bytes.len() as u64,
            effect: self.effect(&located),
            version: self.version(&metadata, context),
            metadata,
            fault,
        })
    }

    fn fault(&self, located: &Located<'_>, context: &Context) -> Result<Option<SyntaxFault>> {
        if self.syntax == SyntaxCheck::Skip {
            return Ok(None);
        }
        // A file that may not be read is not reported on.
        let before = || match located.open_file() {
            Ok(open) => read_up_to(&open, 0, syntax::PARSED_MAX + 1, &context.cancel).map(Some),
            Err(_) => Ok(None),
        };
        let after = || match self.mode {
            WriteMode::Append => {
                let mut text = before()?.unwrap_or_default();
                text.extend_from_slice(&self.bytes);
                Ok(text)
            }
            WriteMode::Overwrite | WriteMode::CreateOnly => Ok(self.bytes.clone()),
        };
        let kept = match self.mode {
            WriteMode::Append => located.metadata().map_or(0, |metadata| metadata.size),
            WriteMode::Overwrite | WriteMode::CreateOnly => 0,
        };
        let size = kept.saturating_add(self.bytes.len() as u64);
        syntax::new_fault(&located.path(), &before, (&after, size), context)
    }

    fn append(&self, located: &Located<'_>, context: &Context) -> Result<Metadata> {
        let change = context.change(Planned::NOTHING)?;
        let appended = change.append(located, &self.bytes, self.parents);
        appended.map_err(|error| self.place.explain(error, Wanted::Directory))
    }

    fn replace(
        &self,
        lock: &EditLock,
        located: &Located<'_>,
        context: &Context,
    ) -> Result<Metadata> {
        let on_existing = match located.metadata() {
            Some(_) => OnExisting::Replace,
            // A file that another process makes meanwhile is not locked, and must not be replaced unseen.
            None => OnExisting::Fail,
        };
        let planned = Planned::overwriting(u64::from(located.metadata().is_some()));
        let staged = context
            .change(planned)?
            .stage(located, on_existing, self.parents);
        let mut staged = staged.map_err(|error| self.place.explain(error, Wanted::Directory))?;
        staged.reserve(self.bytes.len() as u64)?;
        for piece in self.bytes.chunks(PIECE) {
            context.cancel.check()?;
            staged
                .write_all(piece)
                .map_err(|error| write_failed(located, &error))?;
        }
        context.cancel.check()?;
        lock.confirm()?;
        match staged.commit() {
            Err(sandbox::Error::AlreadyExists { path }) if self.mode == WriteMode::Overwrite => {
                Err(Error::Stale { path })
            }
            committed => Ok(committed?),
        }
    }

    fn version(&self, metadata: &Metadata, context: &Context) -> Option<Version> {
        let content = match self.mode {
            WriteMode::Append => None,
            WriteMode::Overwrite | WriteMode::CreateOnly => Some(self.bytes.as_slice()),
        };
        let place = &self.place;
        place.version_written(metadata, content, &context.cancel)
    }

    fn effect(&self, located: &Located<'_>) -> WriteEffect {
        match (located.metadata(), self.mode) {
            (None, _) => WriteEffect::Created,
            (Some(_), WriteMode::Append) => WriteEffect::Appended,
            (Some(_), _) => WriteEffect::Replaced,
        }
    }
}

/// Distinguishes a full disk from other errors while content is written.
pub(crate) fn write_failed(located: &Located<'_>, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let path = located.path();
    match error.kind() {
        StorageFull | QuotaExceeded => Error::DiskFull { path },
        _ => Error::Io {
            operation: "write",
            path,
            reason: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context, with_limits};
    use crate::{FileKind, Limits};

    fn write(tree: &Tree, path: &str, text: &str, mode: WriteMode) -> Result<Written> {
        let (place, parents) = (tree.place(path), Parents::Create);
        Write {
            place,
            bytes: text.as_bytes().to_vec(),
            mode,
            parents,
            syntax: SyntaxCheck::Skip,
        }
        .run(&context())
    }

    #[test]
    fn overwrite_creates_and_replaces() {
        let tree = Tree::new();
        let written = write(&tree, "deep/er/file", "one", WriteMode::Overwrite).unwrap();
        assert_eq!(written.effect, WriteEffect::Created);
        assert_eq!(written.bytes_written, 3);
        assert_eq!(written.path, "deep/er/file");
        tree.set_mode("deep/er/file", 0o640);
        let written = write(&tree, "deep//./er/file", "other", WriteMode::Overwrite).unwrap();
        assert_eq!(written.effect, WriteEffect::Replaced);
        assert_eq!(written.metadata.size, 5);
        assert_eq!(tree.read("deep/er/file"), "other");
        assert_eq!(tree.mode("deep/er/file"), 0o640);
        assert_eq!(tree.names("deep/er"), ["file"]);
    }

    #[test]
    fn append_creates_and_adds() {
        let tree = Tree::new();
        assert_eq!(
            write(&tree, "log", "a\n", WriteMode::Append)
                .unwrap()
                .effect,
            WriteEffect::Created
        );
        let written = write(&tree, "log", "b\n", WriteMode::Append).unwrap();
        assert_eq!(written.effect, WriteEffect::Appended);
        assert_eq!(written.bytes_written, 2);
        assert_eq!(tree.read("log"), "a\nb\n");
        assert_eq!(written.metadata.size, 4);
    }

    #[test]
    fn create_only_leaves_what_is_there() {
        let tree = Tree::new();
        assert_eq!(
            write(&tree, "f", "a", WriteMode::CreateOnly)
                .unwrap()
                .effect,
            WriteEffect::Created
        );
        let failure = write(&tree, "f", "b", WriteMode::CreateOnly).unwrap_err();
        assert!(matches!(
            failure,
            Error::AlreadyExists {
                kind: FileKind::File,
                ..
            }
        ));
        assert_eq!(tree.read("f"), "a");
    }

    #[test]
    fn missing_parents_are_an_error_where_they_are_required() {
        let tree = Tree::new();
        tree.directory("docs");
        let place = tree.place("dosc/file");
        let (bytes, mode, parents) = (Vec::new(), WriteMode::Overwrite, Parents::Require);
        let failure = Write {
            place,
            bytes,
            mode,
            parents,
            syntax: SyntaxCheck::Skip,
        }
        .run(&context())
        .unwrap_err();
        let Error::NotFound { near, wanted, .. } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!(near, vec!["docs".to_owned()]);
        assert_eq!(wanted, Wanted::Directory);
        assert_eq!(tree.names(""), ["docs"]);
    }

    #[test]
    fn only_regular_files_are_written() {
        let tree = Tree::new();
        tree.directory("dir").fifo("pipe").file("file", "");
        tree.link("out", "../outside/new").link("in", "dir/new");
        for (path, kind) in [
            ("dir", ErrorKind::IsADirectory),
            ("", ErrorKind::IsADirectory),
            ("new/", ErrorKind::IsADirectory),
            ("pipe", ErrorKind::NotAFile),
            ("file/below", ErrorKind::NotADirectory),
            ("out", ErrorKind::Outside),
            ("../x", ErrorKind::Outside),
        ] {
            let failure = write(&tree, path, "x", WriteMode::Overwrite).unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}: {failure:?}");
        }
        write(&tree, "in", "through", WriteMode::Overwrite).unwrap();
        assert_eq!(tree.read("dir/new"), "through");
        assert_eq!(tree.read_link("in"), "dir/new");
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn a_caller_that_gave_up_changes_nothing() {
        let tree = Tree::new();
        let (place, parents) = (tree.place("a/b"), Parents::Create);
        let write = Write {
            place,
            bytes: vec![1],
            mode: WriteMode::Overwrite,
            parents,
            syntax: SyntaxCheck::Skip,
        };
        assert_eq!(
            write.run(&cancelled()).unwrap_err().kind(),
            ErrorKind::Cancelled
        );
        assert!(tree.names("").is_empty());
    }

    #[test]
    fn durable_writes_give_the_same() {
        let tree = Tree::new();
        let (place, parents) = (tree.place("a/b"), Parents::Create);
        let write = Write {
            place,
            bytes: b"x".to_vec(),
            mode: WriteMode::CreateOnly,
            parents,
            syntax: SyntaxCheck::Skip,
        };
        write.run(&with_limits(Limits::for_tests())).unwrap();
        assert_eq!(tree.read("a/b"), "x");
    }
}
