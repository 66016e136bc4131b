//! The walk of a copy: it makes directories and links, and collects the files that others copy.
//!
//! The source is walked as every tree is; a second descent follows it through the copy. A link to a directory outside
//! the tree starts a walk of its own at that place.

use std::collections::VecDeque;
use std::sync::Arc;

use sandbox::{
    AllLeaves, Descent, Dir, FileKind, Follow, LinkTarget, Metadata, Name, RelPath, WalkEvent,
    WalkItem, WalkOptions, Walker, is_within,
};

use super::link_text::{depth_in, relative_text, stays_below};
use super::{CopyBatch, CopyJob, CopySide, FileEntry, FileGroup, SkipReason};
use crate::error::{Error, Result};

/// How many files are handed out at once.
const FILES_PER_BATCH: usize = 32;
/// How many directories they may be in: each keeps two descriptors open until its files are copied.
const GROUPS_PER_BATCH: usize = 8;
/// After how many steps a batch is handed out that has few files.
const STEPS_PER_BATCH: usize = 512;
/// How many links to directories may be nested before the next one is left out.
const LINKS_ON_THE_WAY: usize = 8;

/// A walk through the source and, beside it, through the copy.
pub(super) struct CopyWalk {
    job: Arc<CopyJob>,
    /// The source, and inside it the trees that links lead to, the innermost last.
    trees: Vec<WalkedTree>,
    destination: Descent<()>,
    /// Directories that must not be met on the way down.
    destination_top: Metadata,
    /// The host paths of both tops, for links that lead to a directory around them.
    tops: [String; 2],
    has_failed: bool,
}

/// A tree that is walked: the source itself, or what a link in it leads to.
struct WalkedTree {
    /// Its top's resolved path in the source's root; empty for the root itself.
    top: String,
    walker: Walker,
}

impl WalkedTree {
    fn new(top: Dir, path: String) -> WalkedTree {
        let walker = Walker::new(top, WalkOptions::default());
        WalkedTree { top: path, walker }
    }
}

/// A batch in the making.
#[derive(Default)]
struct BatchBuilder {
    batch: CopyBatch,
    files: usize,
    steps: usize,
    /// The next file belongs to the last group.
    goes_on: bool,
}

impl BatchBuilder {
    fn is_full(&self) -> bool {
        self.files >= FILES_PER_BATCH
            || self.batch.groups.len() >= GROUPS_PER_BATCH
            || self.steps >= STEPS_PER_BATCH
    }
}

impl CopyWalk {
    pub(super) fn new(
        job: Arc<CopyJob>,
        source: &CopySide,
        destination: &CopySide,
    ) -> Result<CopyWalk> {
        let mut descent = Descent::new();
        descent.enter(destination.top.clone(), ())?;
        let tops = [source, destination].map(|side| side.root.host_path(side.top.path()));
        let tree = WalkedTree::new(source.top.clone(), source.top.path().to_owned());
        Ok(CopyWalk {
            job,
            trees: vec![tree],
            destination: descent,
            destination_top: destination.top.metadata()?,
            tops,
            has_failed: false,
        })
    }

    /// Walks until there are enough files; `None` at the end or if the caller gave up.
    pub(super) fn next_batch(&mut self) -> Option<CopyBatch> {
        if self.has_failed || self.trees.is_empty() {
            return None;
        }
        let mut builder = BatchBuilder::default();
        while !builder.is_full() && !self.trees.is_empty() {
            if self.job.cancel.must_stop() {
                return None;
            }
            if let Err(error) = self.step(&mut builder) {
                builder.batch.failure = Some(error);
                self.has_failed = true;
                break;
            }
        }
        Some(builder.batch)
    }

    fn step(&mut self, builder: &mut BatchBuilder) -> Result<()> {
        let Some(tree) = self.trees.last_mut() else {
            return Ok(());
        };
        builder.steps += 1;
        match tree.walker.step(&mut AllLeaves) {
            Some(WalkEvent::Item(item)) => self.entry(item, builder),
            Some(WalkEvent::Entered(item, dir)) => {
                let metadata = dir.metadata()?;
                let destination = self.destination()?;
                self.job.note_dir(&destination, &item.name, &metadata);
                self.enter(&item.name, &dir, builder)
            }
            // It vanished or changed its kind since it was listed.
            Some(WalkEvent::Unreadable(
                _,
                sandbox::Error::NotFound { .. } | sandbox::Error::NotADirectory { .. },
            ))
            | Some(WalkEvent::Passed) => Ok(()),
            Some(WalkEvent::Unreadable(_, error)) => Err(error.into()),
            Some(WalkEvent::Fault(fault)) => Err(fault.error.into()),
            Some(WalkEvent::Left(_)) => self.leave(builder),
            None => {
                self.trees.pop();
                self.leave(builder)
            }
        }
    }

    /// Makes the directory of the copy that stands for a directory of the source, and enters it.
    fn enter(&mut self, name: &Name, source: &Dir, builder: &mut BatchBuilder) -> Result<()> {
        let metadata = source.metadata()?;
        // The paths were compared before; this holds against mounts and moves as well.
        if metadata.same_file(&self.destination_top) {
            return Err(Error::IntoItself {
                path: source.path().to_owned(),
            });
        }
        let parent = self.destination()?;
        let made = self.job.make_dir(&parent, name, source.mode_of_copy()?)?;
        self.destination.enter(made, ())?;
        builder.batch.tally.directories += 1;
        builder.goes_on = false;
        Ok(())
    }

    fn leave(&mut self, builder: &mut BatchBuilder) -> Result<()> {
        builder.goes_on = false;
        if let Some((_, reopened)) = self.destination.leave() {
            reopened?;
        }
        Ok(())
    }

    /// The directory of the copy that the walk is in.
    fn destination(&mut self) -> Result<Dir> {
        let innermost = self.destination.innermost().map(|(dir, ())| dir.clone());
        Ok(innermost.ok_or(sandbox::Error::Stopped)?)
    }

    fn entry(&mut self, item: WalkItem, builder: &mut BatchBuilder) -> Result<()> {
        match item.kind {
            FileKind::File => self.file(item, None, builder),
            FileKind::Symlink => self.link(item, builder),
            kind => self.skip(&item, SkipReason::Special(kind), builder),
        }
    }

    fn file(
        &mut self,
        item: WalkItem,
        linked: Option<RelPath>,
        builder: &mut BatchBuilder,
    ) -> Result<()> {
        builder.files += 1;
        let groups = &mut builder.batch.groups;
        let file = FileEntry {
            name: item.name,
            linked,
        };
        if let Some(group) = groups.back_mut().filter(|_| builder.goes_on) {
            group.files.push_back(file);
            return Ok(());
        }
        let destination = self.destination()?;
        groups.push_back(FileGroup {
            source: item.dir,
            destination,
            files: VecDeque::from([file]),
        });
        builder.goes_on = true;
        Ok(())
    }

    fn skip(&self, item: &WalkItem, reason: SkipReason, builder: &mut BatchBuilder) -> Result<()> {
        self.job.skip(&mut builder.batch.tally, item.path(), reason)
    }

    /// The resolved path of the top of the tree that the walk is in.
    fn top(&self) -> &str {
        self.trees.last().map_or("", |tree| &tree.top)
    }

    fn link(&mut self, item: WalkItem, builder: &mut BatchBuilder) -> Result<()> {
        let job = Arc::clone(&self.job);
        let link = item.dir.locate(&job.source, &item.name)?;
        let is_link = |metadata: &&Metadata| metadata.kind == FileKind::Symlink;
        let Some(metadata) = link.metadata().filter(is_link) else {
            // It vanished or changed its kind since it was listed.
            return Ok(());
        };
        let directory = self.destination()?;
        job.note_link(&item.dir, &directory, &item.name, metadata)?;
        match link.link_target()? {
            LinkTarget::Outside if job.options.on_skip == super::OnSkip::Fail => {
                Err(link.leads_outside().into())
            }
            LinkTarget::Outside => self.skip(&item, SkipReason::LeadsOutside, builder),
            LinkTarget::Loop => self.skip(&item, SkipReason::Loop, builder),
            LinkTarget::Dangling => self.dangling(&item, builder),
            LinkTarget::Inside { path, .. } if is_within(&path, self.top()) => {
                self.inner_link(&item, &path, builder)
            }
            LinkTarget::Inside { path, metadata } => match metadata.kind {
                // A link to a file outside the tree becomes a file.
                FileKind::File => self.file(item, Some(RelPath::parse(&path)?), builder),
                FileKind::Directory => self.link_to_directory(&item, path, builder),
                kind => self.skip(&item, SkipReason::Special(kind), builder),
            },
        }
    }

    /// A dangling link stays one if its text does not leave the tree.
    fn dangling(&mut self, item: &WalkItem, builder: &mut BatchBuilder) -> Result<()> {
        let text = item.dir.read_link(&item.name)?;
        if stays_below(&text, depth_in(self.top(), item.dir.path())) {
            self.make_link(&item.name, &text, builder)
        } else {
            self.skip(item, SkipReason::Dangling, builder)
        }
    }

    /// A link to something in the tree leads to the same thing in the copy.
    fn inner_link(
        &mut self,
        item: &WalkItem,
        path: &str,
        builder: &mut BatchBuilder,
    ) -> Result<()> {
        let depth = depth_in(self.top(), item.dir.path());
        let text = item.dir.read_link(&item.name)?;
        if stays_below(&text, depth) {
            return self.make_link(&item.name, &text, builder);
        }
        match relative_text(self.top(), path, depth) {
            Some(text) => self.make_link(&item.name, text.as_bytes(), builder),
            None => self.skip(item, SkipReason::Untranslatable, builder),
        }
    }

    fn make_link(&mut self, name: &Name, text: &[u8], builder: &mut BatchBuilder) -> Result<()> {
        let destination = self.destination()?;
        self.job.make_link(&destination, name, text)?;
        builder.batch.tally.links += 1;
        Ok(())
    }

    /// A link to a directory outside the tree becomes a directory with the same content.
    fn link_to_directory(
        &mut self,
        item: &WalkItem,
        path: String,
        builder: &mut BatchBuilder,
    ) -> Result<()> {
        let host = self.job.source.host_path(&path);
        let around = self.tops.iter().any(|top| is_within(top, &host));
        if around || is_within(item.dir.path(), &path) || self.trees.len() > LINKS_ON_THE_WAY {
            return self.skip(item, SkipReason::Loop, builder);
        }
        let opened = self
            .job
            .source
            .locate(&RelPath::parse(&path)?, Follow::Never)?
            .open_dir();
        let dir = match opened {
            // It vanished or changed its kind since it was looked up.
            Err(sandbox::Error::NotFound { .. } | sandbox::Error::NotADirectory { .. }) => {
                return Ok(());
            }
            opened => opened?,
        };
        self.enter(&item.name, &dir, builder)?;
        self.trees.push(WalkedTree::new(dir, path));
        Ok(())
    }
}
