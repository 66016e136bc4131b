//! Lists a directory, or the tree below it, in byte order.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use sandbox::{
    Choice, Dir, DirEntry, FileKind, Follow, LinkTarget, Name, RelPath, Seen, WalkEvent, WalkFault,
    WalkItem, WalkOptions, Walker,
};

use crate::context::{Cancel, Context};
use crate::entry_facts::EntryFacts;
use crate::error::{Error, PatternRole, Result, Wanted};
use crate::gathered_bytes::{Gathered, told_entry, with_room};
use crate::name_list::{NameList, NameListEntries};
use crate::operation::Operation;
use crate::ordered::{self, Halt, RunEnd, Stages, Worked};
use crate::pattern::FileFilter;
use crate::place::Place;
use crate::pool;

/// The number of entries from which several threads describe them, and how many each thread takes at a time.
const SHARED_FROM: usize = 2048;
const SHARED_UNIT: usize = 512;
/// How many faults of a listing are kept.
const FAULTS_KEPT: usize = 100;

/// Whether names that begin with a dot are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Like all others.
    Include,
    /// Neither listed nor entered.
    Skip,
}

/// How much is returned about each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Name, path and kind, which the directory itself provides.
    Names,
    /// Also metadata, and where links lead.
    Metadata,
}

/// Lists a directory.
#[derive(Debug)]
pub struct List {
    /// The directory; links are followed.
    pub place: Place,
    /// How deep to go: 1 is the directory's own entries, `None` everything.
    pub max_depth: Option<usize>,
    /// Whether names that begin with a dot are listed.
    pub hidden: Hidden,
    /// Lists only what matches: names if it has no `/`, else paths below the directory.
    pub pattern: Option<String>,
    /// How much is returned about each entry.
    pub detail: Detail,
    /// The most entries to return.
    pub max_entries: usize,
}

impl List {
    /// The most entries any caller should ask for.
    pub const MAX_ENTRIES: usize = 1_000_000;
}

/// One entry of a listing.
#[derive(Debug, Clone)]
pub struct ListEntry {
    /// Its path inside the root.
    pub path: Box<str>,
    /// What is known of it. It was looked at if that was requested and possible.
    pub facts: EntryFacts,
    /// Where it leads, if it is a link and details were asked for.
    pub target: Option<Box<LinkTarget>>,
}

impl ListEntry {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether its name begins with a dot.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.name().starts_with('.')
    }
}

/// What a directory holds.
#[derive(Debug)]
pub struct Listed {
    /// The directory's resolved path.
    pub path: String,
    /// The entries in byte order of their paths.
    pub entries: Vec<ListEntry>,
    /// Whether there are more.
    pub truncated: bool,
    /// Whether the time was over before everything was listed; only if a part is wanted then.
    pub timed_out: bool,
    /// Directories below that could not be read: the first hundred.
    pub faults: Vec<WalkFault>,
    /// How many there are.
    pub faults_total: u64,
}

impl Operation for List {
    type Outcome = Listed;

    fn run(self, context: &Context) -> Result<Listed> {
        self.run_after(None, context)
    }
}

impl List {
    /// Lists like [`Operation::run`], of the directory's own entries only those behind this name.
    pub fn run_after(self, after: Option<&str>, context: &Context) -> Result<Listed> {
        let after = after.map(RelPath::parse).transpose()?;
        let after = after.and_then(|path| path.file_name());
        let time = ListTime::of_call(context);
        with_room(context, |gathered| {
            self.try_run(after.clone(), &time, context, gathered)
        })
    }

    /// Lists like [`Operation::run`], but only for this long; then it returns what it has. The call needs some more
    /// time to describe the entries found.
    pub fn run_within(self, timeout: Duration, context: &Context) -> Result<Listed> {
        let time = ListTime {
            cancel: context.cancel.within(timeout),
            on_timeout: OnTimeout::Return,
        };
        with_room(context, |gathered| {
            self.try_run(None, &time, context, gathered)
        })
    }

    fn try_run(
        &self,
        after: Option<Name>,
        time: &ListTime,
        context: &Context,
        gathered: &Arc<Gathered>,
    ) -> Result<Listed> {
        let mut filter = Filter::new(self.pattern.as_deref(), self.hidden)?;
        let (located, metadata) = self.place.existing(Follow::Last, Wanted::Directory)?;
        if metadata.kind != FileKind::Directory {
            return Err(Error::NotADirectory {
                path: self.place.path.as_given().to_owned(),
            });
        }
        let describe = Describe {
            place: self.place.clone(),
            detail: self.detail,
        };
        let listing = ListRun {
            request: self,
            after,
            describe,
            time,
            context,
            gathered: Arc::clone(gathered),
        };
        let dir = located.open_dir()?;
        let mut listed = Listed {
            path: located.path(),
            entries: Vec::new(),
            truncated: false,
            timed_out: false,
            faults: Vec::new(),
            faults_total: 0,
        };
        match self.max_depth {
            Some(0) => {}
            Some(1) => listing.own_entries(&dir, &filter, &mut listed)?,
            _ => listing.tree(dir, &mut filter, &mut listed)?,
        }
        Ok(listed)
    }
}

impl Listed {
    fn add_fault(&mut self, fault: WalkFault) {
        self.faults_total += 1;
        if self.faults.len() < FAULTS_KEPT {
            self.faults.push(fault);
        }
    }
}

/// How long a listing may take.
struct ListTime {
    cancel: Cancel,
    on_timeout: OnTimeout,
}

/// What happens to a listing whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnTimeout {
    Fail,
    /// What was found is returned.
    Return,
}

impl ListTime {
    fn of_call(context: &Context) -> ListTime {
        ListTime {
            cancel: context.cancel.clone(),
            on_timeout: OnTimeout::Fail,
        }
    }

    /// Whether there is time left; an error if the call has to stop.
    fn is_left(&self) -> Result<bool> {
        let is_over = self.on_timeout == OnTimeout::Return
            && self.cancel.is_expired()
            && !self.cancel.is_cancelled();
        if is_over {
            return Ok(false);
        }
        self.cancel.check_and_give_way()?;
        Ok(true)
    }
}

struct ListRun<'a> {
    request: &'a List,
    time: &'a ListTime,
    /// Only entries behind this name are listed.
    after: Option<Name>,
    describe: Describe,
    context: &'a Context,
    gathered: Arc<Gathered>,
}

impl ListRun<'_> {
    /// Sorts before it asks for metadata, so that a cut listing costs no more than what it returns.
    fn own_entries(&self, dir: &Dir, filter: &Filter, listed: &mut Listed) -> Result<()> {
        let mut found = NameList::default();
        dir.for_each_entry(&mut |entry| {
            let (name, kind, depth) = (entry.name.as_bytes(), entry.kind, 1);
            let seen = Seen {
                path: name,
                name,
                kind,
                depth,
            };
            if found.len().is_multiple_of(SHARED_UNIT) {
                pool::give_way(&self.context.cancel);
            }
            let must_stop = self.time.cancel.must_stop() || self.gathered.is_refused();
            let is_behind = self.after.as_ref().is_none_or(|after| entry.name > *after);
            if !must_stop && is_behind && filter.wants(&seen) && self.takes(name.len()) {
                found.push(&entry);
            }
        })?;
        listed.timed_out = !self.time.is_left()?;
        if self.gathered.is_refused() {
            return Ok(());
        }
        found.sort();
        listed.truncated = found.len() > self.request.max_entries;
        found.truncate(self.request.max_entries);
        let more_time = ListTime {
            cancel: self.context.cancel.share(),
            on_timeout: self.time.on_timeout,
        };
        let time = if listed.timed_out {
            &more_time
        } else {
            self.time
        };
        let (entries, is_whole) = self.described(dir, found, time)?;
        listed.timed_out |= !is_whole;
        listed.entries = entries;
        Ok(())
    }

    /// Counts an entry with a name or path of this length, and tells whether there is room for it.
    fn takes(&self, length: usize) -> bool {
        self.gathered.add(told_entry::<ListEntry>(length))
    }

    /// Describes entries, on several threads if there are many; tells whether there was time for all.
    fn described(
        &self,
        dir: &Dir,
        found: NameList,
        time: &ListTime,
    ) -> Result<(Vec<ListEntry>, bool)> {
        let mut entries = Vec::with_capacity(found.len());
        if found.len() < SHARED_FROM || self.request.detail == Detail::Names {
            for entry in found {
                if !time.is_left()? {
                    return Ok((entries, false));
                }
                entries.extend(self.describe.entry(dir, &entry));
            }
            return Ok((entries, true));
        }
        let describing = Describing {
            dir: dir.clone(),
            describe: self.describe.clone(),
        };
        let (entries, end) = ordered::run(describing, found.into_iter(), entries, &time.cancel)?;
        let is_whole = end == RunEnd::Complete;
        if !is_whole {
            time.is_left()?;
        }
        Ok((entries, is_whole))
    }

    fn tree(&self, dir: Dir, filter: &mut Filter, listed: &mut Listed) -> Result<()> {
        let max_depth = self.request.max_depth;
        let mut walker = Walker::new(
            dir,
            WalkOptions {
                max_depth,
                ..WalkOptions::default()
            },
        );
        self.context.cancel.check()?;
        while let Some(visit) = walker.step(filter) {
            if !self.time.is_left()? {
                listed.timed_out = true;
                break;
            }
            match visit {
                WalkEvent::Item(_) if listed.entries.len() >= self.request.max_entries => {
                    listed.truncated = true;
                    break;
                }
                WalkEvent::Item(WalkItem {
                    dir, name, kind, ..
                }) => {
                    let entry = self.describe.entry(&dir, &DirEntry { name, kind });
                    if !entry
                        .as_ref()
                        .is_none_or(|entry| self.takes(entry.path.len()))
                    {
                        break;
                    }
                    listed.entries.extend(entry);
                }
                WalkEvent::Fault(fault) => listed.add_fault(fault),
                WalkEvent::Unreadable(item, error) => {
                    listed.add_fault(WalkFault::new(&item, error));
                }
                WalkEvent::Entered(..) | WalkEvent::Passed | WalkEvent::Left(_) => {}
            }
        }
        Ok(())
    }
}

/// Determines the kind of an entry.
#[derive(Debug, Clone)]
struct Describe {
    place: Place,
    detail: Detail,
}

impl Describe {
    /// Describes an entry; `None` if it is gone since it was listed.
    fn entry(&self, dir: &Dir, listed: &DirEntry) -> Option<ListEntry> {
        let name = &listed.name;
        let invalid_utf8 = name.is_invalid_utf8();
        let mut facts = EntryFacts::listed(listed.kind, invalid_utf8);
        let mut target = None;
        if self.detail == Detail::Metadata {
            match dir.stat_content(name) {
                Ok(metadata) => facts = EntryFacts::described(&metadata, invalid_utf8),
                Err(sandbox::Error::NotFound { .. }) => return None,
                // The process may be allowed to list an entry but not to examine it.
                Err(_) => {}
            }
            if facts.kind == FileKind::Symlink {
                target = self.link_target(dir, name).map(Box::new);
            }
        }
        Some(ListEntry {
            path: dir.join(name).into_boxed_str(),
            facts,
            target,
        })
    }

    fn link_target(&self, dir: &Dir, name: &Name) -> Option<LinkTarget> {
        dir.locate(&self.place.root, name)
            .and_then(|link| link.link_target())
            .ok()
    }
}

/// Describes the entries of one directory, some at a time.
struct Describing {
    dir: Dir,
    describe: Describe,
}

impl Stages for Describing {
    type Source = NameListEntries;
    type Batch = Vec<DirEntry>;
    type Found = Vec<ListEntry>;
    type Outcome = Vec<ListEntry>;

    fn pull(&self, source: &mut Self::Source) -> Option<Vec<DirEntry>> {
        let batch: Vec<DirEntry> = source.by_ref().take(SHARED_UNIT).collect();
        (!batch.is_empty()).then_some(batch)
    }

    fn split(&self, batch: Vec<DirEntry>) -> (Vec<DirEntry>, Option<Vec<DirEntry>>) {
        (batch, None)
    }

    fn work(&self, batch: Vec<DirEntry>, _: &Halt) -> Worked<Vec<ListEntry>, Vec<DirEntry>> {
        let entries = batch.iter();
        let found = entries.filter_map(|entry| self.describe.entry(&self.dir, entry));
        Worked {
            found: Some(found.collect()),
            rest: None,
        }
    }

    fn commit(&self, outcome: &mut Vec<ListEntry>, found: Vec<ListEntry>) -> ControlFlow<()> {
        outcome.extend(found);
        ControlFlow::Continue(())
    }
}

/// Chooses what is listed.
struct Filter {
    pattern: Option<FileFilter>,
    hidden: Hidden,
}

impl Filter {
    fn new(pattern: Option<&str>, hidden: Hidden) -> Result<Filter> {
        // "*" is the usual default and matches every name.
        let pattern = pattern.filter(|&text| text != "*");
        let pattern = pattern
            .map(|text| FileFilter::new(PatternRole::ListedEntries, text))
            .transpose()?;
        Ok(Filter { pattern, hidden })
    }

    fn shows(&self, name: &[u8]) -> bool {
        self.hidden == Hidden::Include || name.first() != Some(&b'.')
    }
}

impl Choice for Filter {
    fn wants(&self, seen: &Seen<'_>) -> bool {
        let pattern = self.pattern.as_ref();
        self.shows(seen.name) && pattern.is_none_or(|pattern| pattern.chooses(seen))
    }

    fn enters(&self, seen: &Seen<'_>) -> bool {
        let pattern = self.pattern.as_ref();
        self.shows(seen.name)
            && pattern.is_none_or(|pattern| pattern.may_match_below(seen.name, seen.depth))
    }

    fn emits(&mut self, _: &WalkItem) -> bool {
        true
    }

    fn descends(&mut self, _: &WalkItem) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::{Tree, cancelled, context};

    fn request(tree: &Tree, path: &str) -> List {
        List {
            place: tree.place(path),
            max_depth: Some(1),
            hidden: Hidden::Include,
            pattern: None,
            detail: Detail::Metadata,
            max_entries: List::MAX_ENTRIES,
        }
    }

    fn paths(listed: &Listed) -> Vec<&str> {
        listed.entries.iter().map(|entry| &*entry.path).collect()
    }

    fn sample() -> Tree {
        let tree = Tree::new();
        tree.file("d/b.txt", "12")
            .file("d/a/x.txt", "")
            .file("d/a-b", "")
            .file("d/.h/y.txt", "");
        tree.file("d/B.rs", "").directory("d/empty");
        tree
    }

    #[test]
    fn a_large_directory_is_described_in_order() {
        let tree = Tree::new();
        let mut expected = Vec::new();
        for number in 0..SHARED_FROM + SHARED_UNIT / 2 {
            let name = format!("{}-{number}", number % 7);
            tree.file(&name, "x".repeat(number % 3));
            expected.push((name, number % 3));
        }
        expected.sort();
        let listed = request(&tree, ".").run(&context()).unwrap();
        let found: Vec<_> = listed
            .entries
            .iter()
            .map(|entry| (entry.path.to_string(), entry.facts.size as usize))
            .collect();
        assert_eq!(found, expected);
        assert!(matches!(
            request(&tree, ".").run(&cancelled()),
            Err(Error::Cancelled)
        ));
    }

    #[test]
    fn own_entries_come_in_byte_order_with_metadata() {
        let tree = sample();
        let listed = request(&tree, "d").run(&context()).unwrap();
        assert_eq!(
            paths(&listed),
            ["d/.h", "d/B.rs", "d/a", "d/a-b", "d/b.txt", "d/empty"]
        );
        let last_file = &listed.entries[4];
        assert_eq!(last_file.name(), "b.txt");
        assert_eq!(last_file.facts.size, 2);
        assert!(listed.entries[0].is_hidden() && !listed.truncated && listed.faults.is_empty());
        assert_eq!(listed.path, "d");
    }

    #[test]
    fn trees_come_in_path_order() {
        let tree = sample();
        let mut list = request(&tree, "");
        list.max_depth = None;
        list.hidden = Hidden::Skip;
        let listed = list.run(&context()).unwrap();
        let expected = [
            "d",
            "d/B.rs",
            "d/a",
            "d/a-b",
            "d/a/x.txt",
            "d/b.txt",
            "d/empty",
        ];
        assert_eq!(paths(&listed), expected);
        let mut list = request(&tree, "");
        list.max_depth = Some(2);
        assert_eq!(paths(&list.run(&context()).unwrap()).len(), 7);
    }

    #[test]
    fn patterns_choose_by_name_or_by_path() {
        let tree = sample();
        for (pattern, depth, expected) in [
            (
                "*",
                Some(1),
                vec!["d/.h", "d/B.rs", "d/a", "d/a-b", "d/b.txt", "d/empty"],
            ),
            ("*.txt", Some(1), vec!["d/b.txt"]),
            ("*.txt", None, vec!["d/.h/y.txt", "d/a/x.txt", "d/b.txt"]),
            ("a/*.txt", None, vec!["d/a/x.txt"]),
            ("*.{rs,txt}", Some(1), vec!["d/B.rs", "d/b.txt"]),
        ] {
            let mut list = request(&tree, "d");
            (list.pattern, list.max_depth) = (Some(pattern.to_owned()), depth);
            assert_eq!(paths(&list.run(&context()).unwrap()), expected, "{pattern}");
        }
        let mut list = request(&tree, "d");
        list.pattern = Some("[".to_owned());
        assert_eq!(
            list.run(&context()).unwrap_err().kind(),
            ErrorKind::InvalidPattern
        );
    }

    #[test]
    fn names_alone_cost_no_metadata() {
        let tree = sample();
        let mut list = request(&tree, "d");
        list.detail = Detail::Names;
        let listed = list.run(&context()).unwrap();
        assert!(listed.entries.iter().all(|entry| !entry.facts.is_described));
        assert_eq!(listed.entries[2].facts.kind, FileKind::Directory);
    }

    #[test]
    fn a_full_listing_is_cut() {
        let tree = sample();
        for depth in [Some(1), None] {
            let mut list = request(&tree, "d");
            (list.max_entries, list.max_depth) = (2, depth);
            let listed = list.run(&context()).unwrap();
            assert!(listed.truncated);
            assert_eq!(listed.entries.len(), 2);
        }
        let mut list = request(&tree, "d");
        list.max_entries = 6;
        assert!(!list.run(&context()).unwrap().truncated);
    }

    #[test]
    fn what_was_found_is_returned_when_the_time_is_over() {
        let tree = sample();
        for depth in [Some(1), None] {
            for time in [Duration::ZERO, Duration::from_secs(60)] {
                let mut list = request(&tree, "d");
                list.max_depth = depth;
                let listed = list.run_within(time, &context()).unwrap();
                assert_eq!(listed.timed_out, time.is_zero());
                assert_eq!(listed.entries.is_empty(), time.is_zero());
            }
            let mut list = request(&tree, "d");
            list.max_depth = depth;
            let failure = list.run_within(Duration::ZERO, &cancelled()).unwrap_err();
            assert_eq!(failure.kind(), ErrorKind::Cancelled);
        }
    }

    #[test]
    fn links_say_where_they_lead() {
        let tree = Tree::new();
        tree.file("file", "")
            .directory("sub")
            .link("1-file", "file")
            .link("2-dir", "sub");
        tree.link("3-out", "../outside")
            .link("4-dangling", "none")
            .link("5-loop", "5-loop");
        tree.fifo("6-pipe");
        let listed = request(&tree, "").run(&context()).unwrap();
        let target = |index: usize| listed.entries[index].target.as_deref();
        let inside = |index: usize| match target(index) {
            Some(LinkTarget::Inside { metadata, .. }) => Some(metadata.kind),
            _ => None,
        };
        assert_eq!(inside(0), Some(FileKind::File));
        assert_eq!(inside(1), Some(FileKind::Directory));
        assert_eq!(target(2), Some(&LinkTarget::Outside));
        assert_eq!(target(3), Some(&LinkTarget::Dangling));
        assert_eq!(target(4), Some(&LinkTarget::Loop));
        assert_eq!(listed.entries[5].facts.kind, FileKind::Fifo);
        assert_eq!(target(5), None);
        let mut list = request(&tree, "");
        list.max_depth = None;
        assert_eq!(
            list.run(&context()).unwrap().entries.len(),
            8,
            "links are not entered"
        );
    }

    #[test]
    fn names_that_are_not_utf8_are_shown_reversibly() {
        let tree = Tree::new();
        tree.file_named(b"\xe9t\xe9", "");
        let listed = request(&tree, "").run(&context()).unwrap();
        assert_eq!(listed.entries[0].name(), "\u{F7E9}t\u{F7E9}");
        assert!(listed.entries[0].facts.invalid_utf8);
    }

    #[test]
    fn only_directories_are_listed() {
        let tree = sample();
        tree.link("out", "../outside").link("in", "d/a");
        for (path, kind) in [
            ("d/b.txt", ErrorKind::NotADirectory),
            ("none", ErrorKind::NotFound),
            ("out", ErrorKind::Outside),
        ] {
            assert_eq!(
                request(&tree, path).run(&context()).unwrap_err().kind(),
                kind,
                "{path}"
            );
        }
        assert_eq!(
            paths(&request(&tree, "in").run(&context()).unwrap()),
            ["d/a/x.txt"]
        );
        let failure = request(&tree, "d").run(&cancelled()).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Cancelled);
    }
}
