//! Directories that are moved or removed as a whole: nothing in them may be hidden from the caller.

use crate::dir::Dir;
use crate::error::{Error, Result};
use crate::leftovers::is_temporary;
use crate::located::Located;
use crate::metadata::{FileKind, Metadata};
use crate::root::Root;
use crate::view::RootView;
use crate::walk::{WalkOptions, WalkOrder, Walker};

/// Tells whether nothing below a directory is hidden at any of these paths, which it has or will have.
pub(crate) fn is_whole<P: AsRef<[u8]>>(
    root: &Root,
    top: Dir,
    paths: &[P],
    stop: &dyn Fn() -> bool,
) -> Result<bool> {
    let paths = paths.iter().map(AsRef::as_ref);
    match judges(paths.map(|path| (root, path))) {
        judges if judges.is_empty() => Ok(true),
        judges => shows_each(top, &judges, stop),
    }
}

/// A view, and the path by which it is asked.
type Judge<'a> = (&'a RootView, Vec<u8>);

/// The views that may hide something below these paths.
fn judges<'a, 'p>(ends: impl Iterator<Item = (&'a Root, &'p [u8])>) -> Vec<Judge<'a>> {
    let judges = ends.filter_map(|(root, path)| {
        let view = root.view()?;
        (!view.view().shows_all_below(path)).then(|| (&**view, path.to_vec()))
    });
    judges.collect()
}

/// Tells whether every entry below a directory is visible to all views; false too if one cannot be examined.
fn shows_each(top: Dir, judges: &[Judge<'_>], stop: &dyn Fn() -> bool) -> Result<bool> {
    let options = WalkOptions {
        max_depth: None,
        order: WalkOrder::Listed,
    };
    let prefix = top.path_bytes().len() + 1;
    let mut walker = Walker::with_temporary(top, options);
    while let Some(item) = walker.next(&mut |item| !is_temporary(item.name.as_bytes())) {
        if stop() {
            return Err(Error::Stopped);
        }
        let Ok(item) = item else { return Ok(false) };
        let path = item.path_bytes();
        let rest = path.get(prefix..).unwrap_or_default();
        let is_shown = |(view, top): &Judge<'_>| shows(view, top, rest, item.kind);
        if !is_temporary(item.name.as_bytes()) && !judges.iter().all(is_shown) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Located<'_> {
    /// Fails without a name if this is a directory that holds something hidden, or that would be hidden at `to`.
    pub(crate) fn check_whole(
        &self,
        to: Option<&Located<'_>>,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let ends = [Some(self), to].into_iter().flatten();
        let ends: Vec<_> = ends.map(|end| (end.root(), end.path_bytes())).collect();
        let judges = judges(ends.iter().map(|(root, path)| (*root, path.as_slice())));
        if judges.is_empty() || !self.metadata().is_some_and(Metadata::is_directory) {
            return Ok(());
        }
        if shows_each(self.open_dir()?, &judges, stop)? {
            return Ok(());
        }
        Err(Error::PermissionDenied {
            path: self.given().to_owned(),
        })
    }

    /// Says only "permission denied" about a directory that is not empty but shows nothing.
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

    /// Fails if a file or link that is about to be made here would be hidden.
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
