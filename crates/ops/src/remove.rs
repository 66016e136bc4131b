//! Removes a file, a link, a special file, an empty directory or a whole tree.
//!
//! A link is removed itself, never what it points to, and one that leads outside is refused when it is named; inside a
//! tree that is removed, links are simply removed with it.

use std::ops::ControlFlow;

use sandbox::{
    Change, Dir, EmptiedDir, FileKind, LinkTarget, Located, Metadata, OnFault, Removal,
    RemovalStep, TreeRemover, WalkOptions, Walker,
};

use crate::consent::{Planned, files_below};
use crate::context::{Cancel, Context};
use crate::edit_lock::EditLock;
use crate::error::{Error, ErrorKind, Result, TreeWork, Wanted};
use crate::operation::{Operation, again_if_full};
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};
use crate::place::Place;

/// How many entries are counted that a failed removal has left.
pub const LEFT_COUNTED: u64 = 10_000;
/// How many entries one thread visits, removed or not, before others get their turn.
const STEPS_PER_UNIT: usize = 256;

/// What the caller means to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveTarget {
    /// Anything but a directory; a link to a directory is no directory.
    File,
    /// A directory, or a link to one.
    Directory,
    /// Anything.
    Any,
}

/// What happens to a directory's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recurse {
    /// They are removed too.
    Yes,
    /// They are not removed: only the named entry is.
    No,
}

/// What to do if nothing is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnMissing {
    /// It is an error.
    Fail,
    /// Fine, nothing to do.
    Succeed,
}

/// Removes what a path names.
#[derive(Debug)]
pub struct Remove {
    /// What to remove; a link at the end is not followed.
    pub place: Place,
    /// What the caller expects it to be.
    pub target: RemoveTarget,
    /// Whether a directory goes with all it holds; otherwise only empty ones go.
    pub recurse: Recurse,
    /// What to do if nothing is there.
    pub on_missing: OnMissing,
    /// Whether to stop at the first entry that cannot be removed, the named one included.
    pub on_fault: OnFault,
}

/// What was removed.
#[derive(Debug)]
pub struct Removed {
    /// The resolved path.
    pub path: String,
    /// What it was; `None` if nothing was there.
    pub kind: Option<FileKind>,
    /// How many files, links and special files were removed.
    pub files: u64,
    /// How many directories were removed.
    pub directories: u64,
    /// A directory was removed in one step because the history keeps it; its entries were not counted.
    pub uncounted: bool,
    /// What could not be removed, with [`OnFault::Collect`].
    pub faults: Vec<Error>,
}

impl Removed {
    /// Nothing was there.
    fn nothing(path: String) -> Removed {
        Removed {
            path,
            kind: None,
            files: 0,
            directories: 0,
            uncounted: false,
            faults: Vec::new(),
        }
    }
}

impl Operation for Remove {
    type Outcome = Removed;

    fn run(self, context: &Context) -> Result<Removed> {
        again_if_full([&self.place], || self.try_run(context))
    }
}

impl Remove {
    fn try_run(&self, context: &Context) -> Result<Removed> {
        context.cancel.check()?;
        let named = EditLock::take_named(&self.place, self.wanted(), &context.cancel);
        let (lock, located) = match named {
            // Security: what the view hides is missing.
            Err(Error::NotFound { denied: true, .. }) if self.on_missing != OnMissing::Fail => {
                return Ok(Removed::nothing(self.place.path.as_given().to_owned()));
            }
            named => named?,
        };
        lock.confirm()?;
        if located.is_root() {
            return Err(Error::RootProtected);
        }
        let Some(metadata) = located.metadata().copied() else {
            return self.missing(&located);
        };
        self.check_target(&located, &metadata)?;
        let mut removed = Removed {
            kind: Some(metadata.kind),
            ..Removed::nothing(located.path())
        };
        match self.remove(&located, metadata.kind, context) {
            Ok(Some(removal)) => removed.add(removal),
            Ok(None) => removed.uncounted = true,
            Err(fault) if self.collects(&fault) => removed.faults.push(fault),
            Err(fault) => return Err(self.place.with_names(fault)),
        }
        Ok(removed)
    }
}

impl Removed {
    fn add(&mut self, removal: Removal) {
        self.files += removal.files;
        self.directories += removal.directories;
        self.faults
            .extend(removal.faults.into_iter().map(Error::from));
    }
}

impl Remove {
    /// Tells whether to continue after a fault; a caller that gave up wants no reply.
    fn collects(&self, fault: &Error) -> bool {
        self.on_fault == OnFault::Collect
            && !matches!(fault.kind(), ErrorKind::Timeout | ErrorKind::Cancelled)
            && !matches!(fault, Error::Unconfirmed { .. })
    }

    fn missing(&self, located: &Located<'_>) -> Result<Removed> {
        match (self.on_missing, located.require()) {
            (OnMissing::Fail, Err(error)) => Err(self.place.explain(error, self.wanted())),
            _ => Ok(Removed::nothing(located.path())),
        }
    }

    fn wanted(&self) -> Wanted {
        match self.target {
            RemoveTarget::File => Wanted::File,
            RemoveTarget::Directory => Wanted::Directory,
            RemoveTarget::Any => Wanted::Anything,
        }
    }

    fn check_target(&self, located: &Located<'_>, metadata: &Metadata) -> Result<()> {
        let path = || self.place.path.as_given().to_owned();
        let is_directory = match metadata.kind {
            FileKind::Symlink => inside_target(located)?,
            kind => Some(kind),
        } == Some(FileKind::Directory);
        match self.target {
            RemoveTarget::File if metadata.kind == FileKind::Directory => {
                Err(Error::IsADirectory { path: path() })
            }
            RemoveTarget::Directory if !is_directory => Err(Error::NotADirectory { path: path() }),
            _ => Ok(()),
        }
    }

    /// How many files would be removed. A tree is counted only if the count can matter.
    fn planned(&self, located: &Located<'_>, kind: FileKind, context: &Context) -> Result<Planned> {
        let files = match (kind, self.recurse) {
            (FileKind::Directory, Recurse::Yes) if context.consent.is_limited() => {
                files_below(located.open_dir()?, &context.cancel)?
            }
            (FileKind::Directory, _) => 0,
            _ => 1,
        };
        Ok(Planned::removing(files))
    }

    /// Removes it; `None` if a directory was removed in one step.
    fn remove(
        &self,
        located: &Located<'_>,
        kind: FileKind,
        context: &Context,
    ) -> Result<Option<Removal>> {
        let change = context.change(self.planned(located, kind, context)?)?;
        let removal = match (kind, self.recurse) {
            (FileKind::Directory, Recurse::Yes) => {
                return remove_tree(located, &change, self.on_fault, context);
            }
            (FileKind::Directory, Recurse::No) => {
                change.remove_empty_dir(located)?;
                Removal {
                    directories: 1,
                    ..Removal::default()
                }
            }
            _ => {
                change.unlink(located)?;
                Removal {
                    files: 1,
                    ..Removal::default()
                }
            }
        };
        Ok(Some(removal))
    }
}

/// The kind of what a link leads to inside the root; `None` if it dangles or loops.
///
/// Security: a link that leads outside is refused, so that no call on it reveals or changes anything.
pub(crate) fn inside_target(link: &Located<'_>) -> Result<Option<FileKind>> {
    match link.link_target()? {
        LinkTarget::Inside { metadata, .. } => Ok(Some(metadata.kind)),
        LinkTarget::Dangling | LinkTarget::Loop => Ok(None),
        LinkTarget::Outside => Err(link.leads_outside().into()),
    }
}

/// Removes a directory and everything in it; large trees use several threads. `None` if it was removed in one step.
fn remove_tree(
    located: &Located<'_>,
    change: &Change,
    on_fault: OnFault,
    context: &Context,
) -> Result<Option<Removal>> {
    let stop = || context.cancel.must_stop();
    let is_kept = change.remove_whole(located, &stop);
    if is_kept.map_err(|error| context.cancel.explain(error))? {
        return Ok(None);
    }
    change.note_lost(located)?;
    let remover = change.tree_remover(located, on_fault)?;
    let (removal, failure) = run_remover(remover, on_fault, &context.cancel)?;
    let gone = removal.entries();
    let failure = match failure {
        Some(failure) => failure,
        None => match change.remove_emptied(located, removal, on_fault) {
            Ok(removal) => return Ok(Some(removal)),
            Err(error) => error.into(),
        },
    };
    if gone == 0 || matches!(failure, Error::Unsynced { .. }) {
        return Err(failure);
    }
    let left = entries_left(located);
    Err(Error::Unfinished {
        done: TreeWork::Removed { gone, left },
        cause: Box::new(failure),
    })
}

/// Runs a removal; returns what it removed, and why it ended early.
pub(crate) fn run_remover(
    remover: TreeRemover,
    on_fault: OnFault,
    cancel: &Cancel,
) -> Result<(Removal, Option<Error>)> {
    let stages = TreeRemoval {
        on_fault,
        cancel: cancel.clone(),
    };
    let progress = RemovalProgress::default();
    let (progress, end) = ordered::run(stages, Some(remover), progress, cancel)?;
    let failure = match progress.failure {
        Some(failure) => Some(cancel.explain(failure)),
        None if end == RunEnd::Expired => Some(Error::Timeout),
        None => None,
    };
    Ok((progress.removal, failure))
}

/// Counts a directory and what is in it, up to a bound.
pub(crate) fn entries_left(located: &Located<'_>) -> u64 {
    located.open_dir().map_or(1, entries_from)
}

/// Counts an open directory and what is in it, up to a bound.
pub(crate) fn entries_from(dir: Dir) -> u64 {
    let mut walker = Walker::new(dir, WalkOptions::default());
    let below = std::iter::from_fn(|| walker.next(&mut |_| true));
    1 + below
        .take(LEFT_COUNTED as usize)
        .filter(|item| item.is_ok())
        .count() as u64
}

/// The stages of a removal.
struct TreeRemoval {
    on_fault: OnFault,
    cancel: Cancel,
}

/// What a part of a removal did before its first failure.
#[derive(Default)]
struct RemovalProgress {
    removal: Removal,
    /// Directories to remove when all earlier parts are done.
    emptied: Vec<EmptiedDir>,
    failure: Option<sandbox::Error>,
}

impl Stages for TreeRemoval {
    type Source = Option<TreeRemover>;
    type Batch = TreeRemover;
    type Found = RemovalProgress;
    type Outcome = RemovalProgress;

    fn pull(&self, source: &mut Option<TreeRemover>) -> Option<TreeRemover> {
        source.take()
    }

    fn split(&self, mut remover: TreeRemover) -> (TreeRemover, Option<TreeRemover>) {
        let later = remover.split();
        (remover, later)
    }

    fn work(&self, mut remover: TreeRemover, halt: &Halt) -> Worked<RemovalProgress, TreeRemover> {
        let mut found = RemovalProgress::default();
        let mut is_finished = false;
        let mut steps = 0;
        while !is_finished && !halt.must_stop() && steps < STEPS_PER_UNIT {
            steps += 1;
            match remover.step(&mut found.removal) {
                Ok(RemovalStep::Progressed) => {}
                Ok(RemovalStep::Emptied(dir)) => found.emptied.push(dir),
                Ok(RemovalStep::Finished) => is_finished = true,
                Err(error) => {
                    found.failure = Some(error);
                    is_finished = true;
                }
            }
        }
        self.cancel.advance(found.removal.entries());
        let rest = (!is_finished).then_some(remover);
        Worked {
            found: Some(found),
            rest,
        }
    }

    fn commit(&self, outcome: &mut RemovalProgress, found: RemovalProgress) -> ControlFlow<()> {
        outcome.removal.add(found.removal);
        outcome.failure = found.failure;
        let stop = || self.cancel.must_stop();
        for dir in found.emptied {
            let before = outcome.removal.entries();
            let removed = dir.remove(&stop, self.on_fault, &mut outcome.removal);
            self.cancel.advance(outcome.removal.entries() - before);
            if let Err(error) = removed {
                outcome.failure.get_or_insert(error);
            }
        }
        if outcome.failure.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn request(tree: &Tree, path: &str, target: RemoveTarget, recurse: Recurse) -> Remove {
        let (on_missing, on_fault) = (OnMissing::Fail, OnFault::Stop);
        Remove {
            place: tree.place(path),
            target,
            recurse,
            on_missing,
            on_fault,
        }
    }

    fn remove(tree: &Tree, path: &str, target: RemoveTarget) -> Result<Removed> {
        request(tree, path, target, Recurse::Yes).run(&context())
    }

    #[test]
    fn a_tree_is_not_removed_while_a_part_of_it_is_moved() {
        let tree = Tree::new();
        tree.file("dir/sub/file", "x");
        let part = tree.place("dir/sub");
        let (held, _) = EditLock::take_named(&part, Wanted::Directory, &Cancel::never()).unwrap();
        let mut impatient = context();
        impatient.cancel = Cancel::after(std::time::Duration::from_millis(100));
        let request = || Remove {
            place: tree.place("dir"),
            target: RemoveTarget::Directory,
            recurse: Recurse::Yes,
            on_missing: OnMissing::Fail,
            on_fault: OnFault::Stop,
        };
        let waited = request().run(&impatient).unwrap_err();
        assert_eq!(waited.kind(), ErrorKind::Timeout);
        assert_eq!(tree.read("dir/sub/file"), "x");
        drop(held);
        request().run(&context()).unwrap();
        assert!(!tree.has("dir"));
    }

    #[test]
    fn trees_go_and_are_counted() {
        let tree = Tree::new();
        tree.file("dir/a/file", "")
            .file("dir/b", "")
            .fifo("dir/pipe")
            .file("kept", "");
        tree.link("dir/out", "../../outside")
            .link("dir/in", "../kept");
        let removed = remove(&tree, "dir", RemoveTarget::Directory).unwrap();
        assert_eq!(removed.files, 5);
        assert_eq!(removed.directories, 2);
        assert_eq!(removed.kind, Some(FileKind::Directory));
        assert_eq!(tree.names(""), ["kept"]);
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn targets_are_what_the_caller_takes_them_for() {
        let tree = Tree::new();
        tree.directory("dir").file("file", "").fifo("pipe");
        for (path, target, kind) in [
            ("dir", RemoveTarget::File, ErrorKind::IsADirectory),
            ("file", RemoveTarget::Directory, ErrorKind::NotADirectory),
            ("pipe", RemoveTarget::Directory, ErrorKind::NotADirectory),
            ("", RemoveTarget::Any, ErrorKind::RootProtected),
            ("dir/..", RemoveTarget::Directory, ErrorKind::RootProtected),
            ("fil", RemoveTarget::File, ErrorKind::NotFound),
            ("../outside", RemoveTarget::Any, ErrorKind::Outside),
        ] {
            let failure = remove(&tree, path, target).unwrap_err();
            assert_eq!(failure.kind(), kind, "{path}: {failure:?}");
        }
        remove(&tree, "pipe", RemoveTarget::File).unwrap();
        remove(&tree, "file", RemoveTarget::Any).unwrap();
        remove(&tree, "dir", RemoveTarget::Any).unwrap();
        assert!(tree.names("").is_empty());
    }

    #[test]
    fn a_link_goes_itself_unless_it_leads_outside() {
        let tree = Tree::new();
        tree.file("dir/file", "")
            .link("to-dir", "dir")
            .link("to-file", "dir/file");
        tree.link("loop", "loop")
            .link("dangling", "nowhere")
            .link("out", "../outside/secret");
        let failure = remove(&tree, "out", RemoveTarget::Any).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Outside);
        let failure = remove(&tree, "to-file", RemoveTarget::Directory).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NotADirectory);
        remove(&tree, "to-dir", RemoveTarget::Directory).unwrap();
        for path in ["to-file", "loop", "dangling"] {
            assert_eq!(
                remove(&tree, path, RemoveTarget::File).unwrap().kind,
                Some(FileKind::Symlink)
            );
        }
        assert_eq!(tree.names(""), ["dir", "out"]);
        assert!(tree.has("dir/file"));
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn without_recursion_only_empty_directories_go() {
        let tree = Tree::new();
        tree.file("full/.hidden", "").directory("empty");
        let remove = |path| request(&tree, path, RemoveTarget::Any, Recurse::No).run(&context());
        assert_eq!(
            remove("full").unwrap_err().kind(),
            ErrorKind::DirectoryNotEmpty
        );
        assert_eq!(remove("empty").unwrap().directories, 1);
        assert_eq!(tree.names(""), ["full"]);
    }

    #[test]
    fn what_cannot_go_may_be_told_instead_of_failing() {
        let tree = Tree::new();
        tree.file("full/file", "");
        let mut remove = request(&tree, "full", RemoveTarget::Any, Recurse::No);
        remove.on_fault = OnFault::Collect;
        let removed = remove.run(&context()).unwrap();
        assert_eq!(removed.files, 0);
        assert_eq!(removed.directories, 0);
        let kinds: Vec<ErrorKind> = removed.faults.iter().map(Error::kind).collect();
        assert_eq!(kinds, [ErrorKind::DirectoryNotEmpty]);
        assert!(tree.has("full/file"));
    }

    #[test]
    fn nothing_there_may_be_fine() {
        let tree = Tree::new();
        let mut remove = request(&tree, "no/where", RemoveTarget::Any, Recurse::Yes);
        remove.on_missing = OnMissing::Succeed;
        assert_eq!(remove.run(&context()).unwrap().kind, None);
    }

    #[test]
    fn a_unit_is_small_whatever_it_removes() {
        let tree = Tree::new();
        for n in 0..300 {
            tree.directory(&format!("dir/d{n}"));
        }
        let context = context();
        let place = tree.place("dir");
        let located = place.locate(sandbox::Follow::Never).unwrap();
        let (on_fault, cancel) = (OnFault::Collect, context.cancel.clone());
        let remover = context
            .unseen_change()
            .tree_remover(&located, on_fault)
            .unwrap();
        let halt = Halt::new(&cancel);
        let unit = TreeRemoval { on_fault, cancel }.work(remover, &halt);
        // Each directory takes two steps: the way in and the way out.
        assert!(unit.found.unwrap().removal.entries() <= STEPS_PER_UNIT as u64 / 2);
        assert!(unit.rest.is_some());
    }

    #[test]
    fn a_caller_that_gave_up_loses_nothing() {
        let tree = Tree::new();
        tree.file("dir/file", "");
        let remove = request(&tree, "dir", RemoveTarget::Any, Recurse::Yes);
        assert_eq!(
            remove.run(&cancelled()).unwrap_err().kind(),
            ErrorKind::Cancelled
        );
        assert!(tree.has("dir/file"));
    }
}
