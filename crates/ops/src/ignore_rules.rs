//! Which entries of a walk `.gitignore`, `.ignore` and `.git/info/exclude` leave out.
//!
//! Only files inside the root count, read through the sandbox; the user's and the system's git settings do not.
//! `.ignore` takes precedence over `.gitignore`, and that over `exclude`; a deeper file takes precedence over a higher one.
//! Rules of `.gitignore` and `exclude` do not reach into another repository.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use sandbox::{Dir, FileKind, Follow, Name, RelPath, Root, WalkItem, is_within};

use crate::pattern::check_glob;

/// Whether ignore files apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoreRules {
    /// Everything is searched.
    #[default]
    Disregard,
    /// Entries that these files name are left out, and so is `.git`.
    Respect,
}

/// How much of an ignore file is read.
const FILE_MAX: u64 = 1024 * 1024;

/// The rules that apply at one point of a walk in path order. A walk that continues from there takes a copy.
#[derive(Debug, Clone)]
pub(crate) struct IgnoreStack {
    /// From the root down to the directory whose entries come next.
    levels: Vec<Arc<Rules>>,
}

/// The rules of one directory's ignore files.
#[derive(Debug)]
struct Rules {
    /// The directory's path as shown; empty for the root.
    path: String,
    /// How many components the path has.
    depth: usize,
    has_repository: bool,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
}

impl IgnoreStack {
    /// Reads the rules of every directory from the root down to `dir`, in which a walk begins.
    pub(crate) fn new(root: &Root, dir: &Dir) -> IgnoreStack {
        let mut levels = Vec::new();
        for path in ancestors(dir.path()) {
            let parsed = RelPath::parse(path).ok();
            let located = parsed.and_then(|path| root.locate(&path, Follow::Never).ok());
            if let Some(above) = located.and_then(|located| located.open_dir().ok()) {
                levels.push(Arc::new(Rules::read(&above)));
            }
        }
        levels.push(Arc::new(Rules::read(dir)));
        IgnoreStack { levels }
    }

    /// Tells whether the rules leave an entry out. Entries have to come in path order.
    pub(crate) fn is_ignored(&mut self, item: &WalkItem) -> bool {
        self.enter(&item.dir);
        let is_directory = item.kind == FileKind::Directory;
        if is_directory && item.name.as_bytes() == b".git" {
            return true;
        }
        self.decide(&item.path_bytes(), is_directory)
    }

    /// Makes `dir` the last level. In path order its parent is already there.
    fn enter(&mut self, dir: &Dir) {
        while self
            .levels
            .last()
            .is_some_and(|rules| !is_within(dir.path(), &rules.path))
        {
            self.levels.pop();
        }
        if self
            .levels
            .last()
            .is_none_or(|rules| rules.path != dir.path())
        {
            self.levels.push(Arc::new(Rules::read(dir)));
        }
    }

    fn decide(&self, path: &[u8], is_directory: bool) -> bool {
        let search = |levels: &[Arc<Rules>], rules: &dyn Fn(&Rules) -> Option<bool>| {
            levels.iter().rev().find_map(|level| rules(level))
        };
        let first = |rules: &dyn Fn(&Rules) -> Option<bool>| search(&self.levels, rules);
        let repository = self
            .levels
            .iter()
            .rposition(|rules| rules.has_repository)
            .unwrap_or(0);
        let own = self.levels.get(repository..).unwrap_or_default();
        let in_own = |rules: &dyn Fn(&Rules) -> Option<bool>| search(own, rules);
        first(&|rules| rules.verdict(&rules.ignore, path, is_directory))
            .or_else(|| in_own(&|rules| rules.verdict(&rules.gitignore, path, is_directory)))
            .or_else(|| in_own(&|rules| rules.verdict(&rules.exclude, path, is_directory)))
            .unwrap_or(false)
    }
}

impl Rules {
    fn read(dir: &Dir) -> Rules {
        let repository = entry(b".git").and_then(|name| dir.stat(&name).ok().map(|_| name));
        let exclude = repository.as_ref().and_then(|name| {
            let info = dir.open_dir(name).ok()?.open_dir(&entry(b"info")?).ok()?;
            Some(rules_in(&info, b"exclude"))
        });
        Rules {
            path: dir.path().to_owned(),
            depth: components(dir.path()),
            has_repository: repository.is_some(),
            ignore: rules_in(dir, b".ignore"),
            gitignore: rules_in(dir, b".gitignore"),
            exclude: exclude.unwrap_or_else(Gitignore::empty),
        }
    }

    /// What one of this directory's files says about a path from the root: out, in, or nothing.
    fn verdict(&self, rules: &Gitignore, path: &[u8], is_directory: bool) -> Option<bool> {
        if rules.is_empty() {
            return None;
        }
        let relative = path.splitn(self.depth + 1, |byte| *byte == b'/').last()?;
        match rules.matched(Path::new(OsStr::from_bytes(relative)), is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

fn rules_in(dir: &Dir, name: &[u8]) -> Gitignore {
    read_text(dir, name).map_or_else(Gitignore::empty, |text| parse(&text))
}

fn read_text(dir: &Dir, name: &[u8]) -> Option<String> {
    let opened = dir.open_file(&entry(name)?).ok()?;
    let mut bytes = Vec::new();
    opened.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Builds matchers from an ignore file's lines; a line that is not valid is skipped.
fn parse(text: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for line in text.lines().filter(|line| check_glob(line).is_ok()) {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn entry(name: &[u8]) -> Option<Name> {
    Name::new(name)
}

/// The paths above a directory, the root first.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let cuts = path.match_indices('/').map(|(index, _)| index);
    let above_root = (!path.is_empty()).then_some(0);
    above_root
        .into_iter()
        .chain(cuts)
        .map(|cut| path.get(..cut).unwrap_or_default())
}

fn components(path: &str) -> usize {
    if path.is_empty() {
        0
    } else {
        path.split('/').count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::glob::{Glob, GlobOrder, Kinds, PathPattern};
    use crate::operation::Operation;
    use crate::testing::{Tree, context};

    fn kept(tree: &Tree, place: &str) -> Vec<String> {
        let request = Glob {
            place: tree.place(place),
            pattern: PathPattern::Glob("**".to_owned()),
            kinds: Kinds::Files,
            max_results: 1000,
            timeout: Duration::from_secs(300),
            max_depth: None,
            ignore_rules: IgnoreRules::Respect,
            order: GlobOrder::Path,
            exclude: Vec::new(),
        };
        let found = request.run(&context()).unwrap();
        let paths = found.entries.into_iter().map(|entry| entry.path.into());
        paths
            .filter(|path: &String| !path.contains("ignore"))
            .collect()
    }

    #[test]
    fn rules_mean_what_git_means() {
        for (rules, path, expected) in [
            ("*.log", "a.log", false),
            ("*.log", "deep/a.log", false),
            ("*.log", "a.txt", true),
            ("/a.log", "deep/a.log", true),
            ("/a.log", "a.log", false),
            ("deep/x", "deep/x", false),
            ("deep/x", "other/deep/x", true),
            ("target/", "target/a", false),
            ("target/", "sub/target/a", false),
            ("target/", "sub/target", true),
            ("*.log\n!keep.log", "keep.log", true),
            ("dir\n!dir/keep", "dir/keep", false),
            ("dir/*\n!dir/keep", "dir/keep", true),
            ("**/gen/*.rs", "a/b/gen/x.rs", false),
            ("# *.log", "a.log", true),
            ("a.log   ", "a.log", false),
            ("a.log\r", "a.log", false),
            ("\u{feff}a.log", "a.log", false),
            ("[bad\na.log", "a.log", false),
        ] {
            let tree = Tree::with(&[(".gitignore", rules), (path, "")]);
            let expected = if expected { vec![path] } else { vec![] };
            assert_eq!(kept(&tree, "."), expected, "{rules:?} on {path}");
        }
    }

    #[test]
    fn deeper_files_and_ignore_files_go_first() {
        let tree = Tree::with(&[
            (".gitignore", "*.log\n*.tmp"),
            ("sub/.gitignore", "!a.log"),
            (".ignore", "!b.tmp"),
            ("a.log", ""),
            ("b.tmp", ""),
            ("c.tmp", ""),
            ("sub/a.log", ""),
            ("sub/a.log.d/a.log", ""),
            ("sub/b.log", ""),
            ("sub.d/a.log", ""),
            ("sub0/a.log", ""),
        ]);
        assert_eq!(
            kept(&tree, "."),
            ["b.tmp", "sub/a.log", "sub/a.log.d/a.log"]
        );
        assert_eq!(kept(&tree, "sub"), ["sub/a.log", "sub/a.log.d/a.log"]);
        assert_eq!(kept(&tree, "sub/a.log.d"), ["sub/a.log.d/a.log"]);
    }

    #[test]
    fn repositories_have_their_own_rules() {
        let tree = Tree::with(&[
            (".gitignore", "*.log"),
            (".git/info/exclude", "*.tmp"),
            (".git/config", ""),
            ("a.tmp", ""),
            ("sub/a.tmp", ""),
            ("module/.git/info/exclude", "secret"),
            ("module/secret", ""),
            ("module/a.tmp", ""),
            ("module/a.log", ""),
        ]);
        assert_eq!(kept(&tree, "."), ["module/a.log", "module/a.tmp"]);
    }

    #[test]
    fn rules_outside_do_not_count() {
        let tree = Tree::with(&[("a.log", "")]);
        tree.file("../.gitignore", "*.log");
        tree.link(".gitignore", "../.gitignore");
        assert_eq!(kept(&tree, "."), ["a.log"]);
    }

    #[test]
    fn ancestors_begin_with_the_root() {
        assert_eq!(ancestors("").count(), 0);
        assert_eq!(ancestors("a").collect::<Vec<_>>(), [""]);
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["", "a", "a/b"]);
    }
}
