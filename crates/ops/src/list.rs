//! Lists a directory, or the tree below it, in byte order.

use sandbox::{
    Dir, DirEntry, FileKind, Follow, LinkTarget, Metadata, Name, WalkFault, WalkItem, WalkOptions,
    Walker,
};

use crate::context::Context;
use crate::error::{Error, Result, Wanted};
use crate::operation::Operation;
use crate::pattern::FileFilter;
use crate::place::Place;

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

/// How much is told of each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Name, path and kind: what the directory itself says.
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
    /// Lists only what matches: names where it has no `/`, else paths below the directory.
    pub pattern: Option<String>,
    /// How much is told of each entry.
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
pub struct Entry {
    /// Its path inside the root.
    pub path: String,
    /// What it is.
    pub kind: FileKind,
    /// Whether its name begins with a dot.
    pub hidden: bool,
    /// Whether its name's bytes are not UTF-8.
    pub invalid_utf8: bool,
    /// What is known of it, where that was asked for and could be found out.
    pub metadata: Option<Metadata>,
    /// Where it leads, where it is a link and details were asked for.
    pub target: Option<Box<LinkTarget>>,
}

impl Entry {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// What a directory holds.
#[derive(Debug)]
pub struct Listed {
    /// The directory's resolved path.
    pub path: String,
    /// The entries in byte order of their paths.
    pub entries: Vec<Entry>,
    /// Whether there are more.
    pub truncated: bool,
    /// Directories below that could not be read: the first hundred.
    pub faults: Vec<WalkFault>,
}

impl Operation for List {
    type Outcome = Listed;

    fn run(self, context: &Context) -> Result<Listed> {
        let filter = Filter::new(self.pattern.as_deref(), self.hidden)?;
        let (located, metadata) = self.place.existing(Follow::Last, Wanted::Directory)?;
        if metadata.kind != FileKind::Directory {
            return Err(Error::NotADirectory { path: self.place.path.as_given().to_owned() });
        }
        let listing = Listing { request: &self, filter, context };
        let dir = located.open_dir()?;
        let mut listed = Listed {
            path: located.path(),
            entries: Vec::new(),
            truncated: false,
            faults: Vec::new(),
        };
        match self.max_depth {
            Some(0) => {}
            Some(1) => listing.own_entries(&dir, &mut listed)?,
            _ => listing.tree(dir, &mut listed)?,
        }
        Ok(listed)
    }
}

struct Listing<'a> {
    request: &'a List,
    filter: Filter,
    context: &'a Context,
}

impl Listing<'_> {
    /// Sorts first and asks for metadata then, so that a cut listing costs no more than what it returns.
    fn own_entries(&self, dir: &Dir, listed: &mut Listed) -> Result<()> {
        let mut found: Vec<DirEntry> = Vec::new();
        dir.for_each_entry(&mut |entry| {
            if !self.context.cancel.is_cancelled()
                && self.filter.takes(&entry.name, || entry.name.as_bytes().to_vec())
            {
                found.push(entry);
            }
        })?;
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        listed.truncated = found.len() > self.request.max_entries;
        found.truncate(self.request.max_entries);
        for entry in found {
            self.context.cancel.check()?;
            listed.entries.extend(self.entry(dir, &entry.name, entry.kind));
        }
        Ok(())
    }

    fn tree(&self, dir: Dir, listed: &mut Listed) -> Result<()> {
        let base = dir.path_bytes().len();
        let mut walker = Walker::new(dir, WalkOptions { max_depth: self.request.max_depth });
        let mut enters = |item: &WalkItem| self.filter.enters(&item.name, item.depth);
        while let Some(item) = walker.next(&mut enters) {
            self.context.cancel.check()?;
            match item {
                Ok(item) if !self.filter.takes(&item.name, || below(&item, base)) => {}
                Ok(_) if listed.entries.len() >= self.request.max_entries => {
                    listed.truncated = true;
                    break;
                }
                Ok(item) => {
                    listed.entries.extend(self.entry(&item.dir, &item.name, item.kind));
                }
                Err(fault) if listed.faults.len() < FAULTS_KEPT => listed.faults.push(fault),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Describes an entry; `None` where it has gone since it was listed.
    fn entry(&self, dir: &Dir, name: &Name, kind: FileKind) -> Option<Entry> {
        let mut entry = Entry {
            path: dir.join(name),
            kind,
            hidden: name.is_hidden(),
            invalid_utf8: name.is_invalid_utf8(),
            metadata: None,
            target: None,
        };
        if self.request.detail == Detail::Metadata {
            match dir.stat(name) {
                Ok(metadata) => {
                    entry.kind = metadata.kind;
                    entry.metadata = Some(metadata);
                }
                Err(sandbox::Error::NotFound { .. }) => return None,
                // It may be listed although it may not be looked at.
                Err(_) => {}
            }
            if entry.kind == FileKind::Symlink {
                entry.target = self.link_target(dir, name).map(Box::new);
            }
        }
        Some(entry)
    }

    fn link_target(&self, dir: &Dir, name: &Name) -> Option<LinkTarget> {
        dir.locate(&self.request.place.root, name).and_then(|link| link.link_target()).ok()
    }
}

/// An item's path without its first `base` bytes and the slash after them.
fn below(item: &WalkItem, base: usize) -> Vec<u8> {
    let mut path = item.path_bytes().split_off(base);
    if path.first() == Some(&b'/') {
        path.remove(0);
    }
    path
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
        let compile = |text| FileFilter::new("pattern", text);
        Ok(Filter { pattern: pattern.map(compile).transpose()?, hidden })
    }

    fn takes(&self, name: &Name, path: impl FnOnce() -> Vec<u8>) -> bool {
        let pattern = self.pattern.as_ref();
        self.shows(name) && pattern.is_none_or(|pattern| pattern.is_match(name.as_bytes(), path))
    }

    fn enters(&self, name: &Name, depth: usize) -> bool {
        let pattern = self.pattern.as_ref();
        self.shows(name)
            && pattern.is_none_or(|pattern| pattern.may_match_below(name.as_bytes(), depth))
    }

    fn shows(&self, name: &Name) -> bool {
        self.hidden == Hidden::Include || !name.is_hidden()
    }
}
