//! Moves or renames a file, a link or a tree, inside a root or from one to another.
//!
//! A move is a rename if that gives the same result as a copy. Between file systems it is a copy, and between roots too
//! if the source holds links, because what they lead to is only in the old root. `move_tree.rs` has how a tree is moved
//! by copying.

use sandbox::{
    Change, ChangePlace, FileKind, Follow, Located, Metadata, OnExisting, WalkOptions, Walker,
};

use crate::consent::{Planned, files_below};
use crate::context::{Cancel, Context};
use crate::copy_tree::{Attributes, CopyTally, FileCopy, outwait_step};
use crate::destination::{OnDirectory, TransferSource, check, parent_dir, target};
use crate::edit_lock::{EditLock, LockKey};
use crate::error::{Error, Result, TreeWork, Wanted};
use crate::move_tree;
use crate::operation::{Operation, again_if_full, again_if_vanished};
use crate::place::Place;
use crate::remove::inside_target;
use crate::version::Version;

/// Moves or renames.
#[derive(Debug)]
pub struct Move {
    /// What to move; a link at the end is moved itself.
    pub source: Place,
    /// Where to; missing directories on the way are made.
    pub destination: Place,
    /// What happens to an existing file or empty directory.
    pub on_existing: OnExisting,
    /// What an existing directory as destination means.
    pub on_directory: OnDirectory,
}

/// How something was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// In one step.
    Renamed,
    /// By copying and removing.
    Copied,
}

/// What was moved.
#[derive(Debug)]
pub struct Moved {
    /// The resolved path it had.
    pub source: String,
    /// The resolved path it has.
    pub destination: String,
    /// What it is.
    pub kind: FileKind,
    /// How it was moved.
    pub method: Method,
    /// Its size, or the bytes of all files copied; not counted for a renamed directory.
    pub bytes: Option<u64>,
    /// The files moved; not counted for a renamed directory.
    pub files: Option<u64>,
    /// The version of a moved file, if the caller wants it.
    pub version: Option<Version>,
}

impl Operation for Move {
    type Outcome = Moved;

    fn run(self, context: &Context) -> Result<Moved> {
        again_if_full([&self.destination], || {
            again_if_vanished(|| self.try_run(context))
        })
    }
}

/// The two ends of a move as they were looked up.
struct Ends<'root> {
    source: Located<'root>,
    metadata: Metadata,
    place: Place,
    /// The destination, to be locked.
    target: ChangePlace,
}

impl Ends<'_> {
    /// A directory is locked with all below it: a change below it must not end up in a directory that has moved away.
    fn lock_keys(&self) -> Vec<LockKey> {
        if self.metadata.is_directory() {
            vec![
                LockKey::tree(&self.source),
                LockKey::Tree(self.target.clone()),
            ]
        } else {
            vec![
                LockKey::entry(&self.source),
                LockKey::Entry(self.target.clone()),
            ]
        }
    }
}

impl Move {
    fn try_run(&self, context: &Context) -> Result<Moved> {
        context.cancel.check()?;
        let kind = self.ends()?.metadata.kind;
        if kind == FileKind::Directory {
            // It has none, which is reported before anything below it is examined.
            self.source
                .check_version(&self.source.locate(Follow::Never)?, &context.cancel)?;
        }
        if self.may_rename(context)? {
            let renamed = self.with_turn(context, |moving| {
                if moving.is_same {
                    return Ok(Some(moving.outcome(None)));
                }
                moving.rename(context)
            })?;
            if let Some(moved) = renamed {
                return Ok(moved);
            }
        }
        // Checked before anything is copied: what cannot be removed afterwards cannot be moved.
        self.ends()?.source.check_removable()?;
        match kind {
            FileKind::Directory => move_tree::by_copying(self, context),
            _ => self.with_turn(context, |moving| moving.copy_and_remove(context)),
        }
    }

    /// Locks both ends, looks them up again, and moves.
    pub(crate) fn with_turn<T>(
        &self,
        context: &Context,
        act: impl FnOnce(&Moving<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let (lock, ends) =
            EditLock::take_found(&|| self.ends(), &|ends| ends.lock_keys(), &context.cancel)?;
        lock.confirm()?;
        self.source.check_version(&ends.source, &context.cancel)?;
        self.with_ends(&ends, context, act)
    }

    /// Looks at both ends without locking them; whatever is done next has to lock them.
    pub(crate) fn without_turn<T>(
        &self,
        context: &Context,
        act: impl FnOnce(&Moving<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        self.with_ends(&self.ends()?, context, act)
    }

    fn with_ends<T>(
        &self,
        ends: &Ends<'_>,
        context: &Context,
        act: impl FnOnce(&Moving<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let source = TransferSource::new(&self.source, &ends.source, ends.metadata.kind);
        let target = self.locate_target(&ends.place)?;
        let is_same = ends.source.host_path() == target.host_path();
        match (is_same, self.on_existing) {
            (true, OnExisting::Fail) => return Err(occupied(&target)),
            (true, OnExisting::Replace) => {}
            (false, on_existing) => {
                check(&source, &target, on_existing)?;
                check_writable(&target)?;
            }
        }
        let is_inside = self.source.root.is_same(&ends.place.root);
        let replaces = !is_same && target.metadata().is_some_and(|there| !there.is_directory());
        let mut planned = Planned::overwriting(u64::from(replaces));
        if !is_inside && context.consent.is_limited() {
            planned += Planned::removing(files_at(ends, context)?);
        }
        act(&Moving {
            change: context.change(planned)?,
            is_inside,
            source,
            metadata: ends.metadata,
            target: &target,
            place: &ends.place,
            on_existing: match target.metadata() {
                Some(_) => self.on_existing,
                // An entry that another process makes meanwhile is not locked, and must not be replaced unseen.
                None => OnExisting::Fail,
            },
            asked: self.on_existing,
            is_same,
            cancel: &context.cancel,
        })
    }

    fn ends(&self) -> Result<Ends<'_>> {
        let located = self.source.locate_wanted(Follow::Never, Wanted::Source)?;
        let metadata = located
            .require()
            .map_err(|error| self.source.explain(error, Wanted::Source))?;
        if located.is_root() {
            return Err(Error::RootProtected);
        }
        if metadata.kind == FileKind::Symlink {
            inside_target(&located)?;
        }
        let source = TransferSource::new(&self.source, &located, metadata.kind);
        let place = target(&self.destination, &source, self.on_directory)?;
        let target = place.locate(Follow::Never)?.change_place();
        Ok(Ends {
            source: located,
            metadata,
            place,
            target,
        })
    }

    /// Looks up what is replaced: a link itself, but only one that leads nowhere outside.
    fn locate_target<'place>(&self, place: &'place Place) -> Result<Located<'place>> {
        let target = place.locate(Follow::Never)?;
        if target
            .metadata()
            .is_some_and(|metadata| metadata.kind == FileKind::Symlink)
        {
            inside_target(&target)?;
        }
        Ok(target)
    }

    /// Tells whether a rename gives what a copy would give.
    fn may_rename(&self, context: &Context) -> Result<bool> {
        let ends = self.ends()?;
        let same_root = self.source.root.is_same(&ends.place.root);
        Ok(match ends.metadata.kind {
            _ if same_root => true,
            FileKind::File => true,
            FileKind::Directory => !holds_links(&ends.source, context)?,
            _ => false,
        })
    }
}

/// Counts the files that leave their root.
fn files_at(ends: &Ends<'_>, context: &Context) -> Result<u64> {
    match ends.metadata.kind {
        FileKind::Directory => files_below(ends.source.open_dir()?, &context.cancel),
        _ => Ok(1),
    }
}

/// Tells whether a tree holds anything but files and directories.
fn holds_links(source: &Located<'_>, context: &Context) -> Result<bool> {
    let mut walker = Walker::new(source.open_dir()?, WalkOptions::default());
    while let Some(item) = walker.next(&mut |_| true) {
        context.cancel.check_and_give_way()?;
        match item {
            Ok(item) if matches!(item.kind, FileKind::File | FileKind::Directory) => {}
            // What cannot be read cannot be copied either: the copy will say so.
            _ => return Ok(true),
        }
    }
    Ok(false)
}

/// A move whose two ends were looked up and are acceptable.
pub(crate) struct Moving<'a, 'root> {
    pub(crate) change: Change,
    pub(crate) source: TransferSource<'a, 'root>,
    pub(crate) metadata: Metadata,
    pub(crate) target: &'a Located<'a>,
    pub(crate) place: &'a Place,
    pub(crate) on_existing: OnExisting,
    /// The caller's choice for an existing destination.
    asked: OnExisting,
    /// Both ends are the same place.
    is_same: bool,
    /// Both ends are in one root.
    is_inside: bool,
    cancel: &'a Cancel,
}

impl Moving<'_, '_> {
    /// Renames; `None` if the ends are on different file systems.
    fn rename(&self, context: &Context) -> Result<Option<Moved>> {
        let stop = || context.cancel.must_stop();
        let (from, to) = (self.source.located, self.target);
        match self.change.rename(from, to, self.on_existing, &stop) {
            Err(sandbox::Error::CrossDevice { .. }) => Ok(None),
            Err(error @ sandbox::Error::AlreadyExists { .. }) => Err(self.occupied(error)),
            Err(error) => Err(context.cancel.explain(error)),
            Ok(()) => Ok(Some(self.outcome(None))),
        }
    }

    /// The change of a move that copies. Between two roots no single step decides whether it was made, so that their
    /// histories could not take it back together.
    fn copying(&self) -> Change {
        if self.is_inside {
            self.change.clone()
        } else {
            self.change.irrevocable()
        }
    }

    pub(crate) fn occupied(&self, error: sandbox::Error) -> Error {
        let is_directory = self.target.metadata().is_some_and(Metadata::is_directory);
        match error {
            sandbox::Error::AlreadyExists { .. } if self.asked != self.on_existing => {
                Error::Stale {
                    path: self.target.path(),
                }
            }
            // Its kind was right, so its content is in the way.
            sandbox::Error::AlreadyExists { .. }
                if is_directory && self.on_existing == OnExisting::Replace =>
            {
                Error::DirectoryNotEmpty {
                    path: self.target.path(),
                    names: Vec::new(),
                }
            }
            sandbox::Error::AlreadyExists { .. } => occupied(self.target),
            other => other.into(),
        }
    }

    /// A destination that another process made meanwhile is not locked: the call looks again.
    fn appeared(&self, error: Error) -> Error {
        match error {
            Error::AlreadyExists { path, .. } if self.asked != self.on_existing => {
                Error::Stale { path }
            }
            error => error,
        }
    }

    /// Moves a file or a link by copying it; the source is removed only if it is the one that was copied.
    fn copy_and_remove(&self, context: &Context) -> Result<Moved> {
        if self.is_same {
            return Ok(self.outcome(None));
        }
        let (tally, copied) = match self.source.kind {
            FileKind::Symlink => (self.copy_link()?, self.metadata),
            FileKind::File => self.copy_file(context)?,
            kind => {
                return Err(Error::NotAFile {
                    path: self.source.located.path(),
                    kind,
                });
            }
        };
        let removed = self.remove_copied(&copied);
        removed.map_err(|error| self.source_stays(error, 1))?;
        Ok(self.outcome(Some(&tally)))
    }

    /// Removes the source if it is still what was copied: putting the copy on disk can take long enough for another program
    /// to change it.
    fn remove_copied(&self, copied: &Metadata) -> Result<()> {
        if !self.source.again()?.require()?.same_state(copied) {
            return Err(Error::Changed {
                path: self.source.located.path(),
            });
        }
        Ok(self.copying().unlink(self.source.located)?)
    }

    /// The failure to remove the source of a copy that is whole.
    pub(crate) fn source_stays(&self, cause: Error, left: u64) -> Error {
        self.source_stays_as(cause, left, self.source.located.path())
    }

    /// Builds the error for a source whose remains have another path now.
    pub(crate) fn source_stays_as(&self, cause: Error, left: u64, source: String) -> Error {
        match cause {
            Error::Unsynced { .. } => cause,
            cause => Error::Unfinished {
                done: TreeWork::Moved {
                    destination: self.target.path(),
                    source,
                    left,
                },
                cause: Box::new(cause),
            },
        }
    }

    /// Copies a file, and tells how it was when it was opened.
    fn copy_file(&self, context: &Context) -> Result<(CopyTally, Metadata)> {
        let open = self.source.located.open_file()?;
        // It is removed if it looks unchanged afterwards, so a change from now on has to show.
        outwait_step(&open.metadata, || open.is_local(), self.cancel)?;
        // Synced whatever the process's durability setting, because the source is removed next.
        let change = self.copying().synced().with_more_parts();
        let staged = change.stage_moved(self.target, self.on_existing)?;
        let mut copy = FileCopy::begin(staged, open, Attributes::All)?;
        copy.run(&context.cancel)?;
        let now = self.source.again()?.require()?;
        if !copy.is_of(&now) {
            return Err(Error::Changed {
                path: self.source.located.path(),
            });
        }
        let copied = *copy.opened();
        let tally = CopyTally {
            files: 1,
            bytes: copy.finish().map_err(|error| self.appeared(error))?,
            ..CopyTally::default()
        };
        Ok((tally, copied))
    }

    fn copy_link(&self) -> Result<CopyTally> {
        let change = self.copying().synced();
        let (Some(from), Some(to)) = (self.source.located.name(), self.target.name()) else {
            return Err(Error::RootProtected);
        };
        let (around, _) = parent_dir(self.source.located, &change)?;
        outwait_step(&self.metadata, || around.is_local(), self.cancel)?;
        let text = around.read_link(from)?;
        let (directory, made) = parent_dir(self.target, &change)?;
        match self.target.metadata() {
            Some(_) => change.replace_by_link(&directory, to, &text)?,
            None => change.make_link_in(&directory, to, &text)?,
        }
        if let Some(made) = made {
            made.keep();
        }
        Ok(CopyTally {
            links: 1,
            ..CopyTally::default()
        })
    }

    pub(crate) fn outcome(&self, copied: Option<&CopyTally>) -> Moved {
        let is_directory = self.source.kind == FileKind::Directory;
        let (bytes, files) = match copied {
            Some(tally) => (Some(tally.bytes), Some(tally.files)),
            None if is_directory => (None, None),
            None => (Some(self.metadata.size), Some(1)),
        };
        Moved {
            source: self.source.located.path(),
            destination: self.target.path(),
            kind: self.source.kind,
            method: if copied.is_some() {
                Method::Copied
            } else {
                Method::Renamed
            },
            bytes,
            files,
            version: match self.source.kind {
                FileKind::File => self.place.version_now(self.cancel),
                _ => None,
            },
        }
    }
}

/// Fails if what is replaced is a file that the process may not write, although its directory would allow it.
fn check_writable(target: &Located<'_>) -> Result<()> {
    let is_file = target
        .metadata()
        .is_some_and(|there| there.kind == FileKind::File);
    if is_file {
        target.open_to_replace()?;
    }
    Ok(())
}

/// The refusal to replace what is there.
fn occupied(target: &Located<'_>) -> Error {
    let kind = target
        .require()
        .map_or(FileKind::Unknown, |there| there.kind);
    Error::AlreadyExists {
        path: target.path(),
        kind,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn request(from: &Tree, source: &str, to: &Tree, destination: &str) -> Move {
        Move {
            source: from.place(source),
            destination: to.place(destination),
            on_existing: OnExisting::Replace,
            on_directory: OnDirectory::Into,
        }
    }

    fn rename(tree: &Tree, source: &str, destination: &str) -> Result<Moved> {
        request(tree, source, tree, destination).run(&context())
    }

    #[test]
    fn files_and_trees_are_renamed() {
        let tree = Tree::new();
        tree.file("old", "content").file("dir/x", "");
        let moved = rename(&tree, "old", "new/deep/name").unwrap();
        assert_eq!(moved.method, Method::Renamed);
        assert_eq!(moved.bytes, Some(7));
        assert_eq!(moved.files, Some(1));
        assert_eq!(moved.source.as_str(), "old");
        assert_eq!(moved.destination.as_str(), "new/deep/name");
        let moved = rename(&tree, "dir", "other").unwrap();
        assert_eq!(moved.kind, FileKind::Directory);
        assert_eq!(moved.files, None);
        assert_eq!(tree.names(""), ["new", "other"]);
        assert!(tree.has("other/x"));
    }

    #[test]
    fn onto_itself_is_nothing_to_do_or_a_refusal() {
        let tree = Tree::new();
        tree.file("a", "a");
        rename(&tree, "a", "./a").unwrap();
        let mut strict = request(&tree, "a", &tree, "./a");
        strict.on_existing = OnExisting::Fail;
        let failure = strict.run(&context()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::AlreadyExists);
        assert_eq!(tree.read("a"), "a");
    }

    #[test]
    fn existing_destinations_follow_the_knobs() {
        let tree = Tree::new();
        tree.file("a", "a")
            .file("b", "b")
            .directory("dir")
            .file("full/a", "")
            .directory("sub");
        let mut strict = request(&tree, "a", &tree, "b");
        strict.on_existing = OnExisting::Fail;
        assert_eq!(
            strict.run(&context()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        let mut exact = request(&tree, "a", &tree, "dir");
        exact.on_directory = OnDirectory::Onto;
        let failure = exact.run(&context()).unwrap_err();
        assert!(matches!(
            failure,
            Error::Irreplaceable {
                kind: FileKind::Directory,
                by: FileKind::File,
                ..
            }
        ));
        let failure = rename(&tree, "dir", "b").unwrap_err();
        assert!(matches!(
            failure,
            Error::Irreplaceable {
                kind: FileKind::File,
                by: FileKind::Directory,
                ..
            }
        ));
        rename(&tree, "a", "b").unwrap();
        assert_eq!(tree.read("b"), "a");
        assert_eq!(rename(&tree, "b", "dir").unwrap().destination, "dir/b");
        let onto = |source, destination| {
            let mut onto = request(&tree, source, &tree, destination);
            onto.on_directory = OnDirectory::Onto;
            onto.run(&context())
        };
        assert_eq!(
            onto("dir", "full").unwrap_err().kind(),
            ErrorKind::DirectoryNotEmpty
        );
        onto("dir", "sub").unwrap();
        assert_eq!(tree.names("sub"), ["b"]);
    }

    #[test]
    fn links_move_themselves_unless_they_lead_outside() {
        let tree = Tree::new();
        tree.file("dir/file", "")
            .link("link", "dir")
            .link("out", "../outside/secret");
        tree.link("dangling", "none").file("plain", "p");
        let moved = rename(&tree, "link", "moved").unwrap();
        assert_eq!(moved.kind, FileKind::Symlink);
        assert_eq!(tree.read_link("moved"), "dir");
        assert_eq!(
            rename(&tree, "out", "x").unwrap_err().kind(),
            ErrorKind::Outside
        );
        assert_eq!(
            rename(&tree, "plain", "out").unwrap_err().kind(),
            ErrorKind::Outside
        );
        rename(&tree, "plain", "dangling").unwrap();
        assert_eq!(tree.read("dangling"), "p");
        assert!(!tree.has("none"));
        assert_eq!(
            rename(&tree, "dangling", "moved").unwrap().destination,
            "dir/dangling"
        );
        assert!(tree.has("dir/dangling") && tree.outside_is_untouched());
    }

    #[test]
    fn nothing_moves_into_itself_and_the_root_stays() {
        let tree = Tree::new();
        tree.file("dir/sub/x", "")
            .file("file", "f")
            .link("alias", "dir/sub");
        for (source, destination, kind) in [
            ("dir", "dir/sub", ErrorKind::IntoItself),
            ("dir", "alias/new", ErrorKind::IntoItself),
            ("dir", "dir", ErrorKind::IntoItself),
            ("", "dir/new", ErrorKind::RootProtected),
            ("none", "x", ErrorKind::NotFound),
            ("../outside", "x", ErrorKind::Outside),
            ("file", "../outside/x", ErrorKind::Outside),
        ] {
            let failure = rename(&tree, source, destination).unwrap_err();
            assert_eq!(
                failure.kind(),
                kind,
                "{source} to {destination}: {failure:?}"
            );
        }
        rename(&tree, "file", "file").unwrap();
        assert_eq!(tree.read("file"), "f");
        let failure = request(&tree, "file", &tree, "x")
            .run(&cancelled())
            .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn a_move_and_a_copy_wait_for_the_edits_of_their_destination() {
        use crate::{Cancel, Context, Copy, Recurse};
        let tree = Tree::new();
        tree.file("new", "n").file("old", "o");
        let place = tree.place("old");
        let held = EditLock::take(&place, &Cancel::never()).unwrap();
        let hasty = || Context {
            cancel: Cancel::after(std::time::Duration::from_millis(1)),
            ..context()
        };
        let copy = || Copy {
            source: tree.place("new"),
            destination: tree.place("old"),
            on_existing: OnExisting::Replace,
            on_directory: OnDirectory::Into,
            recurse: Recurse::No,
        };
        let moving = request(&tree, "new", &tree, "old").run(&hasty());
        assert_eq!(moving.unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(copy().run(&hasty()).unwrap_err().kind(), ErrorKind::Timeout);
        assert_eq!(tree.read("old"), "o");
        drop(held);
        copy().run(&context()).unwrap();
        rename(&tree, "new", "old").unwrap();
        assert_eq!(tree.names(""), ["old"]);
    }

    #[test]
    fn other_roots_get_plain_things_by_rename() {
        let (from, to) = (Tree::new(), Tree::new());
        from.file("dir/file", "x").file("file", "y");
        to.directory("there");
        let moved = request(&from, "dir", &to, "there").run(&context()).unwrap();
        assert_eq!(moved.destination.as_str(), "there/dir");
        assert_eq!(moved.method, Method::Renamed);
        request(&from, "file", &to, "new/file")
            .run(&context())
            .unwrap();
        assert_eq!(to.read("there/dir/file"), "x");
        assert_eq!(to.read("new/file"), "y");
        assert!(from.names("").is_empty());
    }

    #[test]
    fn other_roots_get_links_by_copy_or_not_at_all() {
        let (from, to) = (Tree::new(), Tree::new());
        from.file("dir/file", "x")
            .file("lone", "y")
            .link("dir/in", "file");
        from.link("dir/elsewhere", "../lone")
            .file("bad/file", "z")
            .link("bad/out", "../../outside");
        let moved = request(&from, "dir", &to, "dir").run(&context()).unwrap();
        assert_eq!(moved.method, Method::Copied);
        assert_eq!(moved.files, Some(2));
        assert_eq!(moved.bytes, Some(2));
        assert_eq!(to.read_link("dir/in"), "file");
        assert_eq!(to.read("dir/elsewhere"), "y");
        assert_eq!(from.names(""), ["bad", "lone"]);
        let failure = request(&from, "bad", &to, "bad")
            .run(&context())
            .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Outside);
        assert!(from.has("bad/file") && !to.has("bad"));
        from.fifo("pipe").link("to-lone", "lone");
        let failure = request(&from, "pipe", &to, "pipe")
            .run(&context())
            .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::NotAFile);
        request(&from, "to-lone", &to, "to-lone")
            .run(&context())
            .unwrap();
        assert_eq!(to.read_link("to-lone"), "lone");
        assert!(!from.has("to-lone"));
    }

    /// A place on another file system than the trees of these tests, if there is one.
    fn elsewhere(from: &Tree) -> Option<(tempfile::TempDir, Arc<sandbox::Root>)> {
        let memory = tempfile::tempdir_in("/dev/shm").ok()?;
        let root = Arc::new(sandbox::Root::open(memory.path()).unwrap());
        let device = |root: &sandbox::Root| root.metadata().unwrap().device;
        (device(&root) != device(&from.root)).then_some((memory, root))
    }

    #[test]
    fn a_tree_waits_for_the_changes_below_it_however_it_moves() {
        let tree = Tree::new();
        tree.file("dir/sub/file", "x");
        let place = tree.place("dir/sub/file");
        let held = EditLock::take(&place, &crate::Cancel::never()).unwrap();
        let hasty = || Context {
            cancel: crate::Cancel::after(std::time::Duration::from_millis(300)),
            ..context()
        };
        let renamed = request(&tree, "dir", &tree, "other").run(&hasty());
        assert_eq!(renamed.unwrap_err().kind(), ErrorKind::Timeout);
        let Some((memory, root)) = elsewhere(&tree) else {
            return;
        };
        let across = || Move {
            destination: Place::new(Arc::clone(&root), "deep/dir").unwrap(),
            ..request(&tree, "dir", &tree, "")
        };
        assert_eq!(
            across().run(&hasty()).unwrap_err().kind(),
            ErrorKind::Timeout
        );
        let left = root
            .locate(&sandbox::RelPath::root(), Follow::Never)
            .unwrap();
        assert_eq!(
            crate::remove::entries_left(&left),
            1,
            "nothing is left of the copy"
        );
        assert_eq!(tree.read("dir/sub/file"), "x");
        drop(held);
        let moved = across().run(&context()).unwrap();
        assert_eq!(moved.method, Method::Copied);
        assert_eq!(moved.files, Some(1));
        assert!(!tree.has("dir"));
        drop(memory);
    }

    #[test]
    fn other_file_systems_are_reached_by_copy() {
        let from = Tree::new();
        from.file("dir/sub/file", "x")
            .set_mode("dir/sub/file", 0o640);
        let Ok(shared) = tempfile::tempdir_in("/dev/shm") else {
            return;
        };
        let root = Arc::new(sandbox::Root::open(shared.path()).unwrap());
        let mut across = request(&from, "dir", &from, "x");
        across.destination = Place::new(Arc::clone(&root), "new/dir").unwrap();
        let moved = across.run(&context()).unwrap();
        assert_eq!(
            moved.files,
            Some(1).filter(|_| moved.method == Method::Copied)
        );
        assert_eq!(moved.destination.as_str(), "new/dir");
        let copy = Place::new(root, "new/dir/sub/file").unwrap();
        let arrived = copy.locate(Follow::Never).unwrap().metadata().is_some();
        assert!(arrived && !from.has("dir"));
    }
}
