//! Copies a file or a tree, inside a root or from one to another.

use std::time::Duration;

use sandbox::{
    Dir, Durability, FileKind, Follow, Located, OnExisting, OnFault, Parents, StageOptions,
};

use crate::context::{Cancel, Context};
use crate::copy_tree::{OnSkip, Side, Skipped, Tally, copy_tree, fill};
use crate::destination::{OnDirectory, Source, check, parent_dir, target};
use crate::error::{Error, Result, Wanted};
use crate::levels::{Newness, make_in};
use crate::operation::Operation;
use crate::place::Place;
use crate::remove::Recurse;

/// How long a failed copy takes back what it made, whatever its caller's patience.
const TAKING_BACK: Duration = Duration::from_secs(10);

/// Copies a file or a directory.
#[derive(Debug)]
pub struct Copy {
    /// What to copy; links are followed.
    pub source: Place,
    /// Where to; missing directories on the way are made.
    pub destination: Place,
    /// What becomes of a file that is there already. A directory is merged into where it is replaced.
    pub on_existing: OnExisting,
    /// What an existing directory as destination means.
    pub on_directory: OnDirectory,
    /// Whether a directory is copied with all it holds; otherwise it is an error.
    pub recurse: Recurse,
}

/// What was copied.
#[derive(Debug)]
pub struct Copied {
    /// The resolved path of the source.
    pub source: String,
    /// The resolved path of the copy.
    pub destination: String,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// The bytes of all files copied.
    pub bytes: u64,
    /// The files copied, also those that links led to.
    pub files: u64,
    /// The directories copied, the source included.
    pub directories: u64,
    /// The links that stayed links.
    pub links: u64,
    /// What was left out, in byte order: the first thousand.
    pub skipped: Vec<Skipped>,
    /// How many things were left out.
    pub skipped_total: u64,
}

impl Operation for Copy {
    type Outcome = Copied;

    fn run(self, context: &Context) -> Result<Copied> {
        context.cancel.check()?;
        let (located, metadata) = self.source.existing(Follow::Last, Wanted::Source)?;
        let source = Source::new(&self.source, &located, metadata.kind);
        if metadata.kind == FileKind::Directory && self.recurse == Recurse::No {
            return Err(Error::IsADirectory {
                path: located.path(),
            });
        }
        let place = target(&self.destination, &source, self.on_directory)?;
        let target = place.locate(Follow::Last)?;
        check(&source, &target, self.on_existing)?;
        let transfer = Transfer {
            source,
            target: &target,
            on_existing: self.on_existing,
            on_skip: OnSkip::Name,
            durability: context.limits.durability,
        };
        let tally = transfer.run(context)?;
        Ok(Copied {
            source: located.path(),
            destination: target.path(),
            is_directory: metadata.kind == FileKind::Directory,
            bytes: tally.bytes,
            files: tally.files,
            directories: tally.directories,
            links: tally.links,
            skipped: tally.skipped,
            skipped_total: tally.skipped_total,
        })
    }
}

/// The copying itself, for copies and for moves that have to copy.
pub(crate) struct Transfer<'a, 'root> {
    pub(crate) source: Source<'a, 'root>,
    pub(crate) target: &'a Located<'a>,
    pub(crate) on_existing: OnExisting,
    pub(crate) on_skip: OnSkip,
    pub(crate) durability: Durability,
}

impl Transfer<'_, '_> {
    pub(crate) fn run(&self, context: &Context) -> Result<Tally> {
        match self.source.kind {
            FileKind::Directory => self.directory(context),
            _ => self.file(context),
        }
    }

    fn file(&self, context: &Context) -> Result<Tally> {
        let open = self.source.located.open_file()?;
        let staged = self.target.stage(StageOptions {
            on_existing: self.on_existing,
            parents: Parents::Create,
            durability: self.durability,
        })?;
        let cancel = &context.cancel;
        let stop = || cancel.must_stop();
        let bytes = fill(
            staged,
            &open,
            &stop,
            &|bytes| cancel.advance(bytes),
            context,
        )?;
        Ok(Tally {
            files: 1,
            bytes,
            ..Tally::default()
        })
    }

    fn directory(&self, context: &Context) -> Result<Tally> {
        let source = Side {
            root: self.source.located.root(),
            top: self.source.located.open_dir()?,
        };
        let (top, newness) = self.make_top(&source.top, context)?;
        let destination = Side {
            root: self.target.root(),
            top,
        };
        let copied = copy_tree(&source, &destination, newness, self.on_skip, context);
        let copied = copied.and_then(|mut tally| {
            tally.directories += 1;
            if self.durability == Durability::Fsync {
                destination.top.sync_filesystem()?;
            }
            Ok(tally)
        });
        if copied.is_err() && newness == Newness::Fresh {
            self.take_back();
        }
        copied
    }

    fn make_top(&self, source: &Dir, context: &Context) -> Result<(Dir, Newness)> {
        match (self.target.require(), self.target.name()) {
            (Err(_), Some(name)) => {
                let parent = parent_dir(self.target, context)?;
                Ok(make_in(&parent, name, source.metadata()?.mode)?)
            }
            _ => Ok((self.target.open_dir()?, Newness::Old)),
        }
    }

    /// Removes what a failed copy made. Best effort: the copy's own failure is the one to tell.
    fn take_back(&self) {
        let patience = Cancel::after(TAKING_BACK);
        let removed = sandbox::RelPath::parse(&self.target.path())
            .and_then(|path| self.target.root().locate(&path, Follow::Never))
            .and_then(|made| made.remove_tree(&|| patience.must_stop(), OnFault::Collect, &|_| {}));
        drop(removed);
    }
}
