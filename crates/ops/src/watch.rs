//! Watches a file, or a directory with all below it, until something changes.
//!
//! It never waits: the caller polls, so that no thread is held meanwhile.

use sandbox::{Follow, TreeChanges, TreeWatch};

use crate::context::{Cancel, Context};
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;

/// Begins to watch a place.
#[derive(Debug)]
pub struct Watch {
    /// The file or directory; links are followed.
    pub place: Place,
    /// How many directories may be watched.
    pub most: usize,
}

/// A place that is watched.
#[derive(Debug)]
pub struct Watched {
    tree: TreeWatch,
    context: Context,
}

impl Operation for Watch {
    type Outcome = Watched;

    fn run(self, context: &Context) -> Result<Watched> {
        let (located, _) = self.place.existing(Follow::Last, Wanted::Anything)?;
        let give_up = || context.cancel.must_stop();
        let tree = TreeWatch::begin(&self.place.root, &located, self.most, &give_up);
        let tree = tree.map_err(|error| context.cancel.explain(error))?;
        context.cancel.check()?;
        Ok(Watched {
            tree,
            context: context.clone(),
        })
    }
}

impl Watched {
    /// Tells whether something happened since the last look. Never waits.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.tree.has_news()
    }

    /// Tells whether anything is to be reported.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.tree.has_changes()
    }

    /// Reads the events so far, without waiting.
    pub fn look(&mut self) -> Result<()> {
        let cancel = self.context.cancel.clone();
        self.look_within(&cancel)
    }

    /// Reads the events so far, without waiting, with a time limit of its own.
    pub fn look_within(&mut self, cancel: &Cancel) -> Result<()> {
        Ok(self.tree.look(&|| cancel.must_stop())?)
    }

    /// Forgets what happened so far, because it was reported.
    pub fn reset(&mut self) {
        self.tree.reset();
    }

    /// What happened so far.
    #[must_use]
    pub fn report(&self) -> TreeChanges {
        self.tree.report()
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests change files behind the watch's back"
)]
mod tests {
    use sandbox::SeenChange::{Changed, Created, Removed};

    use super::*;
    use crate::testing::{Tree, context};

    fn watch(tree: &Tree, path: &str, most: usize) -> Watched {
        let place = tree.place(path);
        Watch { place, most }.run(&context()).unwrap()
    }

    fn told(watched: &mut Watched) -> Vec<(String, sandbox::SeenChange)> {
        watched.look().unwrap();
        watched.report().changes
    }

    #[test]
    fn what_changes_below_is_told_and_nothing_beside_it() {
        let tree = Tree::new();
        tree.file("dir/a", "1")
            .file("dir/sub/b", "1")
            .file("beside", "");
        let mut watched = watch(&tree, "dir", 100);
        watched.look().unwrap();
        assert!(!watched.has_news() && !watched.has_changes());
        tree.file("beside", "2")
            .file("dir/a", "2")
            .file("dir/sub/c", "");
        std::fs::remove_file(tree.host("dir/sub/b")).unwrap();
        let expected = [
            ("dir/a", Changed),
            ("dir/sub/b", Removed),
            ("dir/sub/c", Created),
        ];
        let expected = expected.map(|(path, change)| (path.to_owned(), change));
        assert_eq!(told(&mut watched), expected);
    }

    #[test]
    fn directories_that_appear_are_watched_and_what_is_in_them_already_is_found() {
        let tree = Tree::new();
        let mut watched = watch(&tree, "", 100);
        tree.file("new/deep/early", "");
        assert!(told(&mut watched).contains(&("new/deep/early".to_owned(), Created)));
        tree.file("new/deep/late", "");
        assert!(told(&mut watched).contains(&("new/deep/late".to_owned(), Created)));
        let (from, to) = (tree.host("new"), tree.host("moved"));
        std::fs::rename(from, to).unwrap();
        tree.file("moved/deep/later", "");
        let told = told(&mut watched);
        assert!(
            told.contains(&("moved/deep/later".to_owned(), Created)),
            "{told:?}"
        );
        assert!(
            !told.iter().any(|(path, _)| path.starts_with("new/")),
            "{told:?}"
        );
    }

    #[test]
    fn a_file_is_seen_also_after_it_was_replaced_and_opening_it_is_no_change() {
        let tree = Tree::new();
        tree.file("f", "1").file("g", "1");
        std::thread::sleep(std::time::Duration::from_millis(30));
        let mut watched = watch(&tree, "f", 100);
        tree.file("g", "2");
        let path = tree.host("f");
        drop(std::fs::OpenOptions::new().write(true).open(&path).unwrap());
        assert_eq!(told(&mut watched), []);
        std::fs::rename(tree.host("g"), &path).unwrap();
        assert_eq!(told(&mut watched), [("f".to_owned(), Changed)]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(told(&mut watched), [("f".to_owned(), Removed)]);
    }

    #[test]
    fn more_directories_than_may_be_watched_are_told() {
        let tree = Tree::new();
        tree.directory("a").directory("b").directory("c");
        assert!(!watch(&tree, "", 4).report().incomplete);
        assert!(watch(&tree, "", 3).report().incomplete);
    }

    #[test]
    fn temporary_names_are_never_told() {
        let tree = Tree::new();
        tree.file("f", "1");
        let mut watched = watch(&tree, "", 10);
        let write = crate::Write {
            place: tree.place("f"),
            bytes: b"2".to_vec(),
            mode: crate::WriteMode::Overwrite,
            parents: sandbox::Parents::Create,
            syntax: crate::SyntaxCheck::Skip,
        };
        write.run(&context()).unwrap();
        assert_eq!(told(&mut watched), [("f".to_owned(), Changed)]);
        tree.directory(".mcp-filesystem")
            .file(".mcp-filesystem/x", "");
        assert_eq!(told(&mut watched).len(), 1);
        tree.file("made", "");
        std::fs::remove_file(tree.host("made")).unwrap();
        assert_eq!(told(&mut watched).len(), 1, "made and removed again");
    }
}
