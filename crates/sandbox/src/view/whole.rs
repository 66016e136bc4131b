//! Directories that are moved or removed as a whole: nothing in them may be hidden from whoever does it.

use crate::error::{Error, Result};
use crate::leftovers::is_temporary;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::view::RootView;
use crate::walk::{WalkOptions, WalkOrder, Walker};

impl Located<'_> {
    /// Fails without a name if this is a directory that holds something hidden, or that would be hidden at `to`.
    pub(crate) fn check_whole(
        &self,
        to: Option<&Located<'_>>,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let ends = [Some(self), to].into_iter().flatten();
        let judges = ends.filter_map(|end| {
            let (view, path) = (end.root().view()?, end.path_bytes());
            (!view.view().shows_all_below(&path)).then_some((view, path))
        });
        let judges: Vec<(_, Vec<u8>)> = judges.collect();
        if judges.is_empty() || !self.metadata().is_some_and(Metadata::is_directory) {
            return Ok(());
        }
        self.check_each(
            &|rest, kind| {
                let mut judges = judges.iter();
                judges.all(|(view, top)| shows(view, top, rest, kind))
            },
            stop,
        )
    }

    fn check_each(
        &self,
        exists: &dyn Fn(&[u8], FileKind) -> bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let refused = || Error::PermissionDenied {
            path: self.given().to_owned(),
        };
        let options = WalkOptions {
            max_depth: None,
            order: WalkOrder::Listed,
        };
        let prefix = self.path_bytes().len() + 1;
        let mut walker = Walker::with_temporary(self.open_dir()?, options);
        while let Some(item) = walker.next(&mut |item| !is_temporary(item.name.as_bytes())) {
            if stop() {
                return Err(Error::Stopped);
            }
            let item = item.map_err(|_| refused())?;
            let path = item.path_bytes();
            let rest = path.get(prefix..).unwrap_or_default();
            if !is_temporary(item.name.as_bytes()) && !exists(rest, item.kind) {
                return Err(refused());
            }
        }
        Ok(())
    }

    /// Says no more than "permission denied" of a directory that is not empty, but shows nothing.
    pub(crate) fn hiding(&self, error: Error) -> Error {
        let is_full = matches!(error, Error::NotEmpty { .. });
        let shows_nothing = || {
            let entries = self.open_dir().and_then(|dir| dir.entries());
            entries.is_ok_and(|entries| entries.is_empty())
        };
        if is_full && self.root().view().is_some() && shows_nothing() {
            return Error::PermissionDenied {
                path: self.given().to_owned(),
            };
        }
        error
    }

    /// Fails if a file or link that is about to be made here would not exist.
    pub(crate) fn check_makeable(&self) -> Result<()> {
        let (Some(view), Some(name)) = (self.root().view(), self.name()) else {
            return Ok(());
        };
        if view.view().shows(&self.path_bytes(), FileKind::File) {
            return Ok(());
        }
        Err(crate::resolve::denied(
            self.given(),
            self.parent_path(),
            name,
        ))
    }
}

fn shows(view: &RootView, top: &[u8], rest: &[u8], kind: FileKind) -> bool {
    view.view().shows(&[top, rest].join(&b'/'), kind)
}
