//! Finds what a view hides in a root, for the operator.

use super::View;
use crate::dir::{Dir, RootShare};
use crate::metadata::FileKind;
use crate::root::Root;
use crate::syscall;
use crate::walk::{WalkOptions, Walker};

/// How many entries are looked at.
const MOST_MET: usize = 200_000;

/// What a view hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HiddenEntries {
    /// The first of them in order; a directory stands for all in it.
    pub first: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// The root has more entries than were looked at.
    pub is_partial: bool,
}

impl Root {
    /// Finds what a view would hide in the whole root, whatever view this root is seen through; names the first few.
    #[must_use]
    pub fn hidden_by(&self, view: &View, named: usize) -> HiddenEntries {
        let mut hidden = HiddenEntries::default();
        let Ok(top) = syscall::reopen_dir_unchecked(self.fd()) else {
            return hidden;
        };
        let share = RootShare {
            view: None,
            ..self.share()
        };
        let mut walker = Walker::new(Dir::new(top, Vec::new(), share), WalkOptions::default());
        let shows = |path: &[u8], kind: FileKind| view.shows(path, kind);
        let mut met = 0;
        while let Some(item) =
            walker.next(&mut |item| shows(&item.path_bytes(), FileKind::Directory))
        {
            met += 1;
            if met > MOST_MET {
                hidden.is_partial = true;
                break;
            }
            let Ok(item) = item else { continue };
            if shows(&item.path_bytes(), item.kind) {
                continue;
            }
            hidden.count += 1;
            if hidden.first.len() < named {
                hidden.first.push(item.path());
            }
        }
        hidden
    }
}
