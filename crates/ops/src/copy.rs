//! Copies a file or a tree, inside a root or from one to another.
//!
//! A copy locks nothing at its source. It is made under a hidden name, and the destination is locked only for the
//! moment in which the copy appears. A tree appears whole, in one step; if it is merged into an existing directory, its
//! files appear one by one.

use std::sync::Arc;
use std::time::Duration;

use sandbox::{Change, FileKind, Follow, HiddenTree, Located, NewDirs, OnExisting, Parents};

use crate::consent::{Planned, files_replaced};
use crate::context::{Cancel, Context};
use crate::copy_tree::{
    Attributes, CopyOptions, CopySide, CopyTally, FileCopy, OnSkip, Skipped, copy_tree, merge,
    vanished,
};
use crate::destination::{OnDirectory, TransferSource, check, parent_dir, target};
use crate::edit_lock::{EditLock, LockKey};
use crate::error::{Error, Result, Wanted};
use crate::operation::{Operation, again_if_full, again_if_vanished};
use crate::place::Place;
use crate::remove::Recurse;
use crate::version::Version;

/// How long a failed call removes what it staged before it leaves the rest to a thread of its own.
const TAKING_BACK: Duration = Duration::from_secs(10);

/// Copies a file or a directory.
#[derive(Debug)]
pub struct Copy {
    /// What to copy; links are followed.
    pub source: Place,
    /// Where to; missing directories on the way are made.
    pub destination: Place,
    /// What happens to an existing file. A directory is merged with an existing one if files may be replaced.
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
    /// The files copied, including those that links led to.
    pub files: u64,
    /// The directories copied, the source included.
    pub directories: u64,
    /// The links that stayed links.
    pub links: u64,
    /// What was left out, in byte order: the first thousand.
    pub skipped: Vec<Skipped>,
    /// How many things were left out.
    pub skipped_total: u64,
    /// The version of a file's copy, if the caller wants it.
    pub version: Option<Version>,
}

impl Operation for Copy {
    type Outcome = Copied;

    fn run(self, context: &Context) -> Result<Copied> {
        again_if_full([&self.destination], || {
            again_if_vanished(|| self.try_run(context))
        })
    }
}

impl Copy {
    fn try_run(&self, context: &Context) -> Result<Copied> {
        context.cancel.check()?;
        let (located, metadata) = self.source.existing(Follow::Last, Wanted::Source)?;
        let source = TransferSource::new(&self.source, &located, metadata.kind);
        let is_directory = metadata.kind == FileKind::Directory;
        if is_directory && self.recurse == Recurse::No {
            return Err(Error::IsADirectory {
                path: located.path(),
            });
        }
        let place = target(&self.destination, &source, self.on_directory)?;
        let target = place.locate(Follow::Last)?;
        check(&source, &target, self.on_existing)?;
        let planned = planned(&source, &target, context)?;
        let copying = Copying {
            source,
            place: &place,
            on_existing: self.on_existing,
            change: context.change(planned)?,
            cancel: &context.cancel,
        };
        let (tally, version) = match (is_directory, target.require()) {
            (false, _) => copying.file(&target)?,
            (true, Ok(_)) => (copying.merge(&target)?, None),
            (true, Err(_)) => (copying.new_tree(&target)?, None),
        };
        Ok(Copied {
            source: located.path(),
            destination: target.path(),
            is_directory,
            bytes: tally.bytes,
            files: tally.files,
            directories: tally.directories,
            links: tally.links,
            skipped: tally.skipped,
            skipped_total: tally.skipped_total,
            version,
        })
    }
}

/// What is replaced. A tree is counted only if the count can matter.
fn planned(
    source: &TransferSource<'_, '_>,
    target: &Located<'_>,
    context: &Context,
) -> Result<Planned> {
    let files = match target.metadata() {
        None => 0,
        Some(there) if !there.is_directory() => 1,
        Some(_) if context.consent.is_limited() => files_replaced(
            source.located.open_dir()?,
            target.open_dir()?,
            &context.cancel,
        )?,
        Some(_) => 0,
    };
    Ok(Planned::overwriting(files))
}

/// A copy under way.
struct Copying<'a, 'root> {
    source: TransferSource<'a, 'root>,
    place: &'a Place,
    on_existing: OnExisting,
    change: Change,
    cancel: &'a Cancel,
}

impl Copying<'_, '_> {
    fn file(&self, target: &Located<'_>) -> Result<(CopyTally, Option<Version>)> {
        let open = self.source.located.open_file()?;
        let staged = self
            .change
            .stage(target, self.on_existing, Parents::Create)?;
        let mut copy = FileCopy::begin(staged, open, Attributes::Mode)?;
        copy.run(self.cancel)?;
        let (_lock, now) = self.turn(&LockKey::entry)?;
        copy.confirm(&now)?;
        let finished = copy.finish().map_err(|error| match error {
            // Another process made it meanwhile, so the call looks again.
            Error::AlreadyExists { path, .. } if self.on_existing == OnExisting::Replace => {
                Error::Stale { path }
            }
            error => error,
        });
        let tally = CopyTally {
            files: 1,
            bytes: finished?,
            ..CopyTally::default()
        };
        Ok((tally, self.place.version_now(self.cancel)))
    }

    /// Waits for the turn to change the destination and looks at it once more: an edit that began before must not undo the
    /// copy, and the copy not the edit.
    fn turn(&self, key: &dyn Fn(&Located<'_>) -> LockKey) -> Result<(EditLock, Located<'_>)> {
        let look_up = || self.place.locate(Follow::Last);
        let (lock, now) = EditLock::take_found(&look_up, &|found| vec![key(found)], self.cancel)?;
        check(&self.source, &now, self.on_existing)?;
        lock.confirm()?;
        Ok((lock, now))
    }

    /// Copies a tree to a path where nothing exists.
    fn new_tree(&self, target: &Located<'_>) -> Result<CopyTally> {
        let source = self.source.side()?;
        let name = target.name().ok_or(Error::RootProtected)?;
        let (parent, made) = parent_dir(target, &self.change)?;
        let mode = source.top.mode_of_copy()?;
        let staging = self.change.stage_tree(&parent, name, mode)?;
        let copied = self.fill(&source, &staging).and_then(|tally| {
            self.publish(&staging)?;
            Ok(tally)
        });
        settle(copied, staging, made, self.cancel)
    }

    /// Makes the copy, and puts it on disk before anybody sees it.
    fn fill(&self, source: &CopySide, staging: &HiddenTree) -> Result<CopyTally> {
        let destination = CopySide {
            root: Arc::clone(&self.place.root),
            top: staging.top().clone(),
        };
        let options = CopyOptions {
            on_skip: OnSkip::Name,
            attributes: Attributes::Mode,
            record: None,
        };
        let tally = copy_tree(source, &destination, &self.change, &options, self.cancel)?;
        self.change.sync_tree(staging.top())?;
        Ok(tally)
    }

    fn publish(&self, staging: &HiddenTree) -> Result<()> {
        let (_lock, now) = self.turn(&LockKey::tree)?;
        if !staging.is_beside(&now)? {
            return Err(vanished(&now));
        }
        if now.metadata().is_some() {
            // It was made meanwhile, and the caller wants to merge.
            return self.merge_into(staging, &now);
        }
        let name = now.name().ok_or(Error::RootProtected)?;
        Ok(staging.appear_as(name, OnExisting::Fail)?)
    }

    /// Copies a tree into an existing directory.
    fn merge(&self, target: &Located<'_>) -> Result<CopyTally> {
        let source = self.source.side()?;
        let directory = target.open_dir()?;
        let staging = self.change.stage_entries(&directory)?;
        let copied = self.fill(&source, &staging).and_then(|tally| {
            let (_lock, now) = self.turn(&LockKey::tree)?;
            if !now.require()?.same_file(&directory.metadata()?) {
                return Err(vanished(&now));
            }
            self.merge_into(&staging, &now)?;
            Ok(tally)
        });
        discard(staging, self.cancel);
        copied
    }

    fn merge_into(&self, staging: &HiddenTree, now: &Located<'_>) -> Result<()> {
        let top = now.open_dir()?;
        let root = &self.place.root;
        let change = self.change.with_more_parts();
        merge(staging.top(), &top, root, &change, self.cancel)?;
        Ok(self.change.sync_made_tree(&top)?)
    }
}

/// Ends a call that staged a tree. If the tree was not made visible, nothing of it is left.
pub(crate) fn settle<T>(
    outcome: Result<T>,
    staging: HiddenTree,
    made: Option<NewDirs>,
    cancel: &Cancel,
) -> Result<T> {
    let is_seen = match &outcome {
        Ok(_) | Err(Error::Unsynced { .. } | Error::Unfinished { .. }) => true,
        Err(_) => false,
    };
    // A merge leaves the staged directories behind, so this is for successes too.
    discard(staging, cancel);
    if let Some(made) = made.filter(|_| is_seen) {
        made.keep();
    }
    outcome
}

/// Removes a staged tree. Removals that take long are left to a separate thread, so that the caller gets its answer. While
/// that thread has much to do, calls remove their own.
fn discard(staging: HiddenTree, cancel: &Cancel) {
    let (tireless, patience) = (cancel.untiring(), cancel.untiring().within(TAKING_BACK));
    let removed = staging.discard(&|| patience.check_and_give_way().is_err());
    if matches!(removed, Err(sandbox::Error::Stopped))
        && let Err(staging) = staging.discard_later()
    {
        // What stays is removed by the sweep at the next start.
        let _ = staging.discard(&|| tireless.check_and_give_way().is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::copy_tree::SkipReason;
    use crate::error::{ErrorKind, TreeWork};
    use crate::grep::{CompressedFiles, Grep, SearchFrom, SearchOutput};
    use crate::ignore_rules::IgnoreRules;
    use crate::pattern::{Case, Pattern, Syntax};
    use crate::remove::{OnMissing, Remove, RemoveTarget};
    use crate::testing::{Tree, cancelled, context, with_limits};
    use sandbox::OnFault;

    fn request(from: &Tree, source: &str, to: &Tree, destination: &str) -> Copy {
        Copy {
            source: from.place(source),
            destination: to.place(destination),
            on_existing: OnExisting::Replace,
            on_directory: OnDirectory::Into,
            recurse: Recurse::Yes,
        }
    }

    fn copy(tree: &Tree, source: &str, destination: &str) -> Result<Copied> {
        request(tree, source, tree, destination).run(&context())
    }

    #[test]
    fn files_are_copied_with_their_mode_but_no_set_uid() {
        let tree = Tree::new();
        tree.file("tool", "content").set_mode("tool", 0o6750);
        let copied = copy(&tree, "tool", "new/dir/tool").unwrap();
        assert_eq!(copied.bytes, 7);
        assert_eq!(copied.files, 1);
        assert!(!copied.is_directory);
        assert_eq!(copied.destination, "new/dir/tool");
        assert_eq!(tree.read("new/dir/tool"), "content");
        assert_eq!(tree.mode("new/dir/tool"), 0o750);
        tree.set_mode("new/dir/tool", 0o600).file("other", "second");
        copy(&tree, "other", "new/dir/tool").unwrap();
        assert_eq!(tree.read("new/dir/tool"), "second");
        assert_eq!(tree.mode("new/dir/tool"), 0o600);
    }

    #[test]
    fn a_copied_tree_has_the_mode_of_its_source() {
        let tree = Tree::new();
        tree.file("tree/file", "").set_mode("tree", 0o755);
        copy(&tree, "tree", "new").unwrap();
        assert_eq!(tree.mode("new"), 0o755);
        // Another copy goes into the directory that is there, whose mode stays.
        tree.set_mode("new", 0o711);
        let mut merge = request(&tree, "tree", &tree, "new");
        merge.on_directory = OnDirectory::Onto;
        merge.run(&context()).unwrap();
        assert_eq!(tree.mode("new"), 0o711);
    }

    #[test]
    fn existing_destinations_follow_the_knobs() {
        let tree = Tree::new();
        tree.file("file", "new")
            .file("there", "old")
            .directory("dir")
            .file("deep/file/x", "");
        let mut strict = request(&tree, "file", &tree, "there");
        strict.on_existing = OnExisting::Fail;
        assert_eq!(
            strict.run(&context()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(tree.read("there"), "old");
        assert_eq!(copy(&tree, "file", "dir").unwrap().destination, "dir/file");
        assert_eq!(
            copy(&tree, "file", "new-dir/").unwrap().destination,
            "new-dir/file"
        );
        assert_eq!(
            copy(&tree, "file", "deep").unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        let mut onto = request(&tree, "file", &tree, "dir");
        onto.on_directory = OnDirectory::Onto;
        assert_eq!(
            onto.run(&context()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        let failure = copy(&tree, "dir", "there").unwrap_err();
        assert!(matches!(
            failure,
            Error::Irreplaceable {
                kind: FileKind::File,
                by: FileKind::Directory,
                ..
            }
        ));
    }

    #[test]
    fn trees_are_copied_and_merged() {
        let tree = Tree::new();
        tree.file("src/a/one", "1")
            .file("src/two", "22")
            .directory("src/empty");
        tree.set_mode("src/a", 0o750);
        let copied = copy(&tree, "src", "dst").unwrap();
        assert_eq!(copied.files, 2);
        assert_eq!(copied.bytes, 3);
        assert_eq!(copied.directories, 3);
        assert!(copied.is_directory && copied.skipped.is_empty());
        assert_eq!(tree.read("dst/a/one"), "1");
        assert_eq!(tree.mode("dst/a"), 0o750);
        tree.file("src/two", "new").file("dst/kept", "k");
        let mut merge = request(&tree, "src", &tree, "dst");
        merge.on_directory = OnDirectory::Onto;
        merge.run(&context()).unwrap();
        assert_eq!(tree.read("dst/two"), "new");
        assert_eq!(tree.read("dst/kept"), "k");
        assert_eq!(copy(&tree, "src", "dst").unwrap().destination, "dst/src");
        assert_eq!(tree.read("dst/src/two"), "new");
        let mut flat = request(&tree, "src", &tree, "flat");
        flat.recurse = Recurse::No;
        assert_eq!(
            flat.run(&context()).unwrap_err().kind(),
            ErrorKind::IsADirectory
        );
    }

    #[test]
    fn a_merge_that_fails_takes_back_only_what_it_made() {
        let tree = Tree::new();
        tree.file("src/a/new", "n")
            .file("src/b", "new")
            .file("src/z", "file");
        tree.file("dst/b", "old")
            .file("dst/z/y", "")
            .file("dst/theirs", "t");
        let mut merge = request(&tree, "src", &tree, "dst");
        merge.on_directory = OnDirectory::Onto;
        let failure = merge.run(&context()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::AlreadyExists);
        let Error::Unfinished { done, .. } = failure else {
            panic!("{failure:?}")
        };
        let (replaced, taken_back) = (1, 2);
        let expected = TreeWork::Merged {
            replaced,
            taken_back,
            left: 0,
        };
        assert_eq!(done, expected);
        assert_eq!(tree.names("dst"), ["b", "theirs", "z"]);
        assert_eq!(tree.read("dst/b"), "new");
    }

    #[test]
    fn a_cancelled_merge_changes_nothing() {
        let tree = Tree::new();
        tree.file("src/b", "new").file("dst/b", "old");
        let mut merge = request(&tree, "src", &tree, "dst");
        merge.on_directory = OnDirectory::Onto;
        assert!(merge.run(&cancelled()).is_err());
        assert_eq!(tree.names("dst"), vec!["b".to_owned()]);
        assert_eq!(tree.read("dst/b"), "old".to_owned());
    }

    #[test]
    fn merges_do_not_replace_directories_by_files() {
        let tree = Tree::new();
        tree.file("src/x", "file").file("dst/x/y", "");
        let mut merge = request(&tree, "src", &tree, "dst");
        merge.on_directory = OnDirectory::Onto;
        assert_eq!(
            merge.run(&context()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert!(tree.has("dst/x/y"));
        tree.link("dst2", "dst")
            .file("src2/x/z", "")
            .file("dst3/x", "file");
        let mut merge = request(&tree, "src2", &tree, "dst3");
        merge.on_directory = OnDirectory::Onto;
        assert_eq!(
            merge.run(&context()).unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(tree.read("dst3/x"), "file");
    }

    #[test]
    fn links_in_a_tree_stay_or_become_content_or_are_named() {
        let tree = Tree::new();
        tree.file("src/sub/file", "in")
            .file("elsewhere/file", "out of tree")
            .file("lone", "lone");
        let absolute = tree.host("src/sub/file");
        tree.link("src/inner", "sub/file")
            .link("src/sub/up", "../sub")
            .link("src/self", ".");
        tree.link("src/absolute", absolute.to_str().unwrap())
            .link("src/sub/round", "../../src/sub");
        tree.link("src/other-file", "../lone")
            .link("src/other-dir", "../elsewhere");
        tree.link("src/outside", "../../outside/secret")
            .link("src/loop", "loop");
        tree.link("src/dangling", "none")
            .link("src/dangling-out-of-tree", "../none");
        tree.link("src/around", "..").fifo("src/pipe");
        let copied = copy(&tree, "src", "dst").unwrap();
        for (link, text) in [
            ("inner", "sub/file"),
            ("sub/up", "../sub"),
            ("self", "."),
            ("absolute", "sub/file"),
            ("sub/round", "../sub"),
            ("dangling", "none"),
        ] {
            assert_eq!(tree.read_link(&format!("dst/{link}")), text, "{link}");
        }
        assert_eq!(tree.read("dst/other-file"), "lone");
        assert_eq!(tree.read("dst/other-dir/file"), "out of tree");
        let skipped: Vec<_> = copied
            .skipped
            .iter()
            .map(|skipped| (skipped.path.as_str(), skipped.reason))
            .collect();
        assert_eq!(
            skipped,
            [
                ("src/around", SkipReason::Loop),
                ("src/dangling-out-of-tree", SkipReason::Dangling),
                ("src/loop", SkipReason::Loop),
                ("src/outside", SkipReason::LeadsOutside),
                ("src/pipe", SkipReason::Special(FileKind::Fifo)),
            ]
        );
        assert_eq!(copied.files, 3);
        assert_eq!(copied.links, 6);
        assert_eq!(copied.skipped_total, 5);
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn links_to_directories_do_not_multiply_for_ever() {
        let tree = Tree::new();
        tree.directory("src")
            .directory("a")
            .directory("b")
            .link("src/l", "../a");
        tree.link("a/l", "../b").link("b/l", "../a");
        let copied = copy(&tree, "src", "dst").unwrap();
        assert!(
            copied.skipped_total >= 1 && copied.directories < 20,
            "{copied:?}"
        );
    }

    #[test]
    fn merges_replace_links_and_never_write_through_them() {
        let tree = Tree::new();
        tree.file("src/x", "new")
            .directory("dst")
            .link("dst/x", "../../outside/secret");
        tree.file("src/d/y", "").file("other/y", "kept");
        let merge = |source: &str| {
            let mut merge = request(&tree, source, &tree, "dst");
            merge.on_directory = OnDirectory::Onto;
            merge.run(&context())
        };
        merge("src").unwrap();
        assert_eq!(tree.read("dst/x"), "new");
        tree.directory("src2")
            .file("src2/z/y", "")
            .link("dst/z", "../other");
        assert_eq!(merge("src2").unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(tree.read("other/y"), "kept");
        assert!(tree.outside_is_untouched());
    }

    #[test]
    fn nothing_is_copied_into_itself() {
        let tree = Tree::new();
        tree.file("dir/sub/file", "")
            .link("dir/back", "..")
            .link("alias", "dir/sub");
        for (source, destination) in [
            ("dir", "dir"),
            ("dir", "dir/sub"),
            ("dir", "dir/sub/new"),
            ("dir", "alias/new"),
            ("dir", "dir/sub/../../dir/x"),
            ("", "dir/x"),
            ("dir/sub/file", "alias/file"),
        ] {
            let failure = copy(&tree, source, destination).unwrap_err();
            assert_eq!(
                failure.kind(),
                ErrorKind::IntoItself,
                "{source} to {destination}"
            );
        }
        assert_eq!(tree.names("dir/sub"), ["file"]);
        // The same place by way of another root.
        let inner = std::sync::Arc::new(sandbox::Root::open(&tree.host("dir/sub")).unwrap());
        let mut across = request(&tree, "dir", &tree, "x");
        across.destination = Place::new(inner, "copy").unwrap();
        assert_eq!(
            across.run(&context()).unwrap_err().kind(),
            ErrorKind::IntoItself
        );
        assert_eq!(copy(&tree, "dir", "dir-2").unwrap().files, 1);
    }

    #[test]
    fn other_roots_are_reached_the_same_way() {
        let (from, to) = (Tree::new(), Tree::new());
        from.file("dir/file", "x").link("link", "dir/file");
        to.directory("there");
        let copied = request(&from, "dir", &to, "there").run(&context()).unwrap();
        assert_eq!(copied.destination, "there/dir");
        assert_eq!(to.read("there/dir/file"), "x");
        request(&from, "link", &to, "there")
            .run(&with_limits(Limits::for_tests()))
            .unwrap();
        assert_eq!(to.read("there/link"), "x");
        let durable = request(&from, "", &to, "all")
            .run(&with_limits(Limits::for_tests()))
            .unwrap();
        assert_eq!(durable.files, 1);
        assert_eq!(to.read("all/dir/file"), "x");
    }

    #[test]
    fn sources_and_destinations_stay_inside() {
        let tree = Tree::new();
        tree.file("file", "").link("out", "../outside").fifo("pipe");
        for (source, destination, kind) in [
            ("none", "x", ErrorKind::NotFound),
            ("out/secret", "x", ErrorKind::Outside),
            ("out", "x", ErrorKind::Outside),
            ("file", "out", ErrorKind::Outside),
            ("file", "out/x", ErrorKind::Outside),
            ("file", "../x", ErrorKind::Outside),
            ("pipe", "x", ErrorKind::NotAFile),
            ("file", "file/x", ErrorKind::NotADirectory),
        ] {
            let failure = copy(&tree, source, destination).unwrap_err();
            assert_eq!(
                failure.kind(),
                kind,
                "{source} to {destination}: {failure:?}"
            );
        }
        assert!(!tree.has("x") && tree.outside_is_untouched());
    }

    #[test]
    fn a_failed_copy_takes_back_what_it_made() {
        let tree = Tree::new();
        tree.file("src/a", "1").file("src/sub/b", "2");
        let failure = request(&tree, "src", &tree, "dst")
            .run(&cancelled())
            .unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
        assert!(!tree.has("dst"));
    }

    #[test]
    fn many_files_arrive() {
        let tree = Tree::new();
        for n in 0..2_000 {
            tree.file(&format!("src/d{}/f{n}", n % 7), n.to_string());
        }
        let context = context();
        let copied = request(&tree, "src", &tree, "dst").run(&context).unwrap();
        assert_eq!(copied.files, 2_000);
        assert_eq!(copied.directories, 8);
        assert_eq!(context.cancel.done(), 2_000);
        assert!((0..2_000).all(|n| tree.read(&format!("dst/d{}/f{n}", n % 7)) == n.to_string()));
    }

    /// More files than a copy begins with on its caller's thread.
    const SMALL_FILES: usize = 70;
    const LARGE_FILES: usize = 80;

    /// Makes small files and many large ones behind them, and a tree of links to them.
    fn large_files(tree: &Tree, directory: &str, links: &str) {
        tree.directory(directory).directory(links);
        tree.file("content", vec![b'x'; 16 << 20]);
        let small = (0..SMALL_FILES).map(|n| format!("a{n}"));
        for name in small.chain((0..LARGE_FILES).map(|n| format!("b{n}"))) {
            let path = format!("{directory}/{name}");
            if name.starts_with('a') {
                tree.file(&path, "x");
            } else {
                tree.second_name("content", &path);
            }
            tree.link(&format!("{links}/{name}"), &format!("../{path}"));
        }
    }

    /// How many entries the copy has that is being made in the root.
    fn staged_entries(tree: &Tree) -> usize {
        let is_staging = |name: &&String| name.starts_with(".mcp-filesystem-");
        let names = tree.names("");
        let staging = names.iter().find(is_staging);
        staging.map_or(0, |name| tree.names(name).len())
    }

    fn needles(tree: &Tree) -> Grep {
        Grep {
            place: tree.place("texts"),
            pattern: Pattern {
                texts: vec!["needle".to_owned()],
                syntax: Syntax::Literal,
                case: Case::Sensitive,
            },
            filter: None,
            context_lines: 0,
            max_results: 1000,
            timeout: Duration::from_secs(60),
            max_depth: None,
            max_file_size: None,
            ignore_rules: IgnoreRules::Disregard,
            output: SearchOutput::Matches,
            from: SearchFrom::Start,
            compressed: CompressedFiles::AsTheyAre,
        }
    }

    /// Searches for another client while `source` is copied; tells how many large files the copy had by then.
    fn copied_during_a_search(tree: &Tree, source: &str) -> usize {
        let (mut copying, mut searching) = (context(), context());
        copying.cancel = copying.cancel.of_client("one");
        searching.cancel = searching.cancel.of_client("other");
        for n in 0..500 {
            tree.file(&format!("texts/d{}/f{n}", n % 50), "needle");
        }
        std::thread::scope(|scope| {
            let copy = scope.spawn(|| request(tree, source, tree, "dst").run(&copying));
            while staged_entries(tree) <= SMALL_FILES {
                std::thread::yield_now();
            }
            let found = needles(tree).run(&searching).unwrap();
            assert_eq!(found.total_matches, 500);
            let copied = staged_entries(tree) - SMALL_FILES;
            copying.cancel.cancel();
            let failure = copy.join().unwrap().unwrap_err();
            assert_eq!(failure.kind(), ErrorKind::Cancelled);
            assert!(!tree.has("dst") && staged_entries(tree) == 0);
            copied
        })
    }

    #[test]
    fn other_clients_do_not_wait_for_large_files() {
        let tree = Tree::new();
        large_files(&tree, "large", "links");
        for source in ["large", "links"] {
            let copied = copied_during_a_search(&tree, source);
            assert!(copied < LARGE_FILES / 4, "{source}: {copied} files");
        }
    }

    #[test]
    fn large_files_arrive_whole() {
        let tree = Tree::new();
        let content: Vec<u8> = (0..7_000_001_u32).map(|n| (n % 127) as u8).collect();
        tree.file("src/a", "first").file("src/b", &content);
        tree.file("src/c", &content).file("src/d", "last");
        tree.file("beside", &content).link("src/e", "../beside");
        tree.set_mode("src/c", 0o640);
        let copied = copy(&tree, "src", "dst").unwrap();
        assert_eq!(copied.files, 5);
        assert_eq!(copied.links, 0);
        assert_eq!(copied.bytes, 3 * 7_000_001 + 9);
        for name in ["b", "c", "e"] {
            let copy = tree.read(&format!("dst/{name}"));
            assert!(copy.as_bytes() == content, "{name}");
        }
        assert_eq!(tree.read("dst/a"), "first");
        assert_eq!(tree.read("dst/d"), "last");
        assert_eq!(tree.mode("dst/c"), 0o640);
        assert_eq!(tree.names("dst"), ["a", "b", "c", "d", "e"]);
    }

    /// Builds a chain of directories with a file in each through descriptors: no path is that long.
    fn deep_tree(tree: &Tree, depth: u64) {
        let change = context().unseen_change();
        let name = sandbox::Name::new(b"d").unwrap();
        let (early, late) = (
            sandbox::Name::new(b"a").unwrap(),
            sandbox::Name::new(b"z").unwrap(),
        );
        tree.directory("deep");
        let mut dir = tree
            .place("deep")
            .locate(Follow::Last)
            .unwrap()
            .open_dir()
            .unwrap();
        for level in 0..depth {
            if level % 100 == 0 {
                change
                    .stage_in(&dir, &early, OnExisting::Fail)
                    .unwrap()
                    .commit()
                    .unwrap();
                change.make_dir_in(&dir, &late, 0o755).unwrap();
            }
            dir = change.make_dir_in(&dir, &name, 0o755).unwrap();
        }
    }

    #[test]
    fn trees_deeper_than_there_are_descriptors_are_copied_and_removed() {
        copy_and_remove(2_000);
    }

    #[test]
    #[ignore = "takes a minute in an unoptimised build"]
    fn ten_thousand_levels_are_copied_and_removed() {
        copy_and_remove(10_000);
    }

    fn copy_and_remove(depth: u64) {
        let tree = Tree::new();
        deep_tree(&tree, depth);
        let directories = 1 + depth + depth / 100;
        let copied = copy(&tree, "deep", "copy").unwrap();
        assert_eq!(copied.directories, directories);
        assert_eq!(copied.files, depth / 100);
        for path in ["deep", "copy"] {
            let (target, recurse) = (RemoveTarget::Directory, Recurse::Yes);
            let (on_missing, on_fault) = (OnMissing::Fail, OnFault::Stop);
            let remove = Remove {
                place: tree.place(path),
                target,
                recurse,
                on_missing,
                on_fault,
            };
            assert_eq!(
                remove.run(&context()).unwrap().directories,
                directories,
                "{path}"
            );
        }
        assert!(tree.names("").is_empty());
    }
}
