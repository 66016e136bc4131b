//! Removes for good everything that a history keeps of a path, under all names that it had.
//!
//! What was at the path may have come from elsewhere by a move, and may have gone on elsewhere. So its names are followed
//! through the moves, on to the newest change and back to the oldest.

use std::collections::BTreeSet;
use std::os::fd::AsFd;

use super::History;
use super::change_record::ChangeRecord;
use super::prune::{clear, plain_dir};
use super::record::{Part, PartKind};
use super::store::Store;
use crate::change::{Change, Durability};
use crate::is_within;
use crate::name::Name;
use crate::resolve::{Means, open_dir_below};
use crate::syscall::{self, Errno};

/// Something that is kept: an object, and the place in it if it is a tree.
type KeptPlace = (String, String);

impl History {
    /// Removes what is kept of one path, or of all below it; tells how many versions went.
    pub fn forget(&self, path: &str) -> u64 {
        let Some(store) = self.existing_store() else {
            return 0;
        };
        let ledger = self.ledger();
        let mut kept = BTreeSet::new();
        let mut names = Names::of(path, Way::Onward);
        for record in ledger.all().filter_map(|change| change.record()) {
            names.pass(&record, &mut kept);
        }
        let mut names = Names::of(path, Way::Back);
        for record in ledger.all().rev().filter_map(|change| change.record()) {
            names.pass(&record, &mut kept);
        }
        let gone = kept.iter().filter(|(object, rest)| match rest.as_str() {
            "" => clear_whole(store, object),
            rest => clear_inside(store, object, rest).is_ok(),
        });
        gone.count() as u64
    }
}

/// The order in which changes are visited.
#[derive(Clone, Copy)]
enum Way {
    Onward,
    Back,
}

/// The names under which something was known, at one moment.
struct Names<'a> {
    /// The path that was asked for: whatever was there counts.
    path: &'a str,
    /// What came from there or went there has these names.
    others: BTreeSet<String>,
    way: Way,
}

impl<'a> Names<'a> {
    fn of(path: &'a str, way: Way) -> Names<'a> {
        Names {
            path,
            others: BTreeSet::new(),
            way,
        }
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        let others = self.others.iter().map(String::as_str);
        std::iter::once(self.path).chain(others)
    }

    fn pass(&mut self, record: &ChangeRecord, kept: &mut BTreeSet<KeptPlace>) {
        // What did not happen may have left something all the same.
        match self.way {
            Way::Onward => {
                for part in &record.parts {
                    self.keep(part, kept);
                    self.follow(part);
                }
            }
            Way::Back => {
                for part in record.parts.iter().rev() {
                    self.follow(part);
                    self.keep(part, kept);
                }
            }
        }
    }

    fn keep(&self, part: &Part, kept: &mut BTreeSet<KeptPlace>) {
        kept.extend(self.all().filter_map(|name| kept_of(part, name)));
    }

    /// Follows a move, and drops names under which something new was created.
    fn follow(&mut self, part: &Part) {
        let path = part.path.as_str();
        let (from, to) = match (part.kind, part.to.as_deref(), self.way) {
            (PartKind::Move, Some(to), Way::Onward) => (path, to),
            (PartKind::Move, Some(to), Way::Back) => (to, path),
            // What was kept and comes back is not new.
            (PartKind::Create, ..) if part.source.is_none() => {
                return self.others.retain(|name| !is_within(name, path));
            }
            _ => return,
        };
        let moved: Vec<String> = self
            .all()
            .filter_map(|name| match name.get(from.len()..) {
                Some(rest) if is_within(name, from) => Some(format!("{to}{rest}")),
                _ if is_within(from, name) => Some(to.to_owned()),
                _ => None,
            })
            .collect();
        self.others.retain(|name| !is_within(name, from));
        let others = moved.into_iter().filter(|name| name != self.path);
        self.others.extend(others);
    }
}

/// What a part has kept of a name.
fn kept_of(part: &Part, name: &str) -> Option<KeptPlace> {
    let object = part.object.as_ref()?;
    // A move keeps what was where it goes.
    let top = part.to.as_deref().unwrap_or(&part.path);
    if is_within(top, name) {
        return Some((object.clone(), String::new()));
    }
    let rest = name.get(top.len()..).filter(|_| is_within(name, top))?;
    Some((object.clone(), rest.to_owned()))
}

fn clear_whole(store: &Store, object: &str) -> bool {
    let name = Name::new(object.as_bytes());
    let name = name.filter(|name| syscall::stat_at_unchecked(store.objects(), name).is_ok());
    name.is_some_and(|name| clear(store, &name).is_ok())
}

/// Removes an entry inside of a kept tree. Security: no link on the way is followed.
fn clear_inside(store: &Store, object: &str, rest: &str) -> crate::Result<()> {
    let failed = |errno| crate::Error::from_errno("unlink", rest, errno);
    let whole = [object.as_bytes(), &crate::name::to_bytes(rest)].concat();
    let slash = whole.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let (parent, last) = whole.split_at(slash);
    let name = last.get(1..).and_then(Name::new);
    let name = name.ok_or_else(|| failed(Errno::INVAL))?;
    let parent = open_dir_below(store.objects(), parent, Means::OneCall).map_err(failed)?;
    let parent = parent.ok_or_else(|| failed(Errno::INVAL))?;
    syscall::stat_at_unchecked(parent.as_fd(), &name).map_err(failed)?;
    let dir = plain_dir(parent.as_fd()).map_err(failed)?;
    Change::begin(Durability::Fast).clear_unmounted(&dir, &name)
}

#[cfg(test)]
mod tests {
    use crate::history::tests::{open, rename, write};

    #[test]
    fn what_is_forgotten_is_followed_through_moves() {
        for forgotten in ["secret", "b", "dir/c"] {
            let temp = tempfile::tempdir().unwrap();
            let root = open(temp.path());
            std::fs::create_dir(temp.path().join("dir")).unwrap();
            write(&root, "secret", "0");
            write(&root, "secret", "1");
            rename(&root, "secret", "b");
            write(&root, "b", "2");
            rename(&root, "b", "dir/c");
            rename(&root, "dir", "new");
            write(&root, "new/c", "3");
            // Other things under the same names.
            write(&root, "secret", "other");
            write(&root, "secret", "other again");
            write(&root, "unrelated", "0");
            write(&root, "unrelated", "1");
            let history = root.history().unwrap();
            // What was replaced under the names, which the asked one has for ever.
            let others = u64::from(forgotten == "secret");
            assert_eq!(history.forget(forgotten), 3 + others, "{forgotten}");
            assert_eq!(history.forget(forgotten), 0, "{forgotten}");
            assert_eq!(history.forget("unrelated"), 1);
        }
    }
}
