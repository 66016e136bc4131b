//! Where an operation works: a root and a path inside it, and how it is looked up.
//!
//! Every operation looks paths up here, so that one place knows what to say of a missing path: what was expected
//! there, and which names are near.

use std::sync::Arc;

use sandbox::{FileKind, Follow, Located, Metadata, OpenFile, RelPath, Root};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result, Wanted};
use crate::text::near;

/// How many names of a directory are compared with a missing one.
const NAMES_COMPARED: usize = 10_000;

/// A path inside a root, parsed and not yet looked up.
#[derive(Debug, Clone)]
pub struct Place {
    /// The root.
    pub root: Arc<Root>,
    /// The path inside it.
    pub path: RelPath,
}

impl Place {
    /// Parses a client's path.
    pub fn new(root: Arc<Root>, path: &str) -> Result<Place> {
        Ok(Place {
            root,
            path: RelPath::parse(path)?,
        })
    }

    /// Returns this place unless its path begins with `/`: a client that knows only one storage would mean the host's root.
    pub fn relative(self) -> Result<Place> {
        if self.path.is_absolute() {
            let path = self.path.as_given().to_owned();
            return Err(Error::Outside {
                leads_to: path.clone(),
                path,
            });
        }
        Ok(self)
    }

    /// Looks it up. A missing last part is not an error yet.
    pub(crate) fn locate(&self, follow: Follow) -> Result<Located<'_>> {
        Ok(self.root.locate(&self.path, follow)?)
    }

    /// Looks up something that must be there.
    pub(crate) fn existing(
        &self,
        follow: Follow,
        wanted: Wanted,
    ) -> Result<(Located<'_>, Metadata)> {
        let located = self.locate(follow)?;
        let metadata = located
            .require()
            .map_err(|error| self.explain(error, wanted))?;
        Ok((located, metadata))
    }

    /// Looks up a regular file that must be there.
    pub(crate) fn existing_file(&self, wanted: Wanted) -> Result<(Located<'_>, Metadata)> {
        let (located, metadata) = self.existing(Follow::Last, wanted)?;
        require_file(&located, &metadata)?;
        Ok((located, metadata))
    }

    /// Opens a regular file that must be there. If that fails, a second look finds out what was expected and what is near.
    pub(crate) fn open_file(&self, wanted: Wanted) -> Result<OpenFile> {
        if let Ok(open) = self.root.open_file(&self.path) {
            return Ok(open);
        }
        match self.existing_file(wanted) {
            Ok((located, _)) => Ok(located.open_file()?),
            Err(error) => match self.same_letters(&error) {
                Some(other) => Ok(other.root.open_file(&other.path)?),
                None => Err(error),
            },
        }
    }

    /// The one entry whose name is the missing one in another Unicode form.
    fn same_letters(&self, error: &Error) -> Option<Place> {
        let Error::NotFound { path, near, .. } = error else {
            return None;
        };
        let given: String = path.nfc().collect();
        let mut same = near.iter().filter(|near| near.nfc().eq(given.chars()));
        let only = same.next().filter(|_| same.next().is_none())?;
        Place::new(Arc::clone(&self.root), only).ok()
    }

    /// Whether something is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let located = self.locate(Follow::Never);
        located.is_ok_and(|located| located.metadata().is_some())
    }

    /// Opens a regular file if that waits for nothing.
    pub(crate) fn try_open_inline(&self) -> Option<OpenFile> {
        self.root.try_open_inline(&self.path)
    }

    /// Looks up where a file is to be written: a missing place, or a regular file.
    pub(crate) fn file_to_write(&self) -> Result<Located<'_>> {
        let located = self.locate(Follow::Last)?;
        match located.metadata() {
            Some(metadata) => require_file(&located, metadata)?,
            // The root itself has no metadata here either.
            None if located.is_root() || self.path.must_be_directory() => {
                return Err(Error::IsADirectory {
                    path: self.path.as_given().to_owned(),
                });
            }
            None => {}
        }
        Ok(located)
    }

    /// Adds to "not found" what was wanted and which names are near.
    pub(crate) fn explain(&self, error: sandbox::Error, wanted: Wanted) -> Error {
        match error {
            sandbox::Error::NotFound {
                path,
                parent,
                missing,
            } => Error::NotFound {
                path,
                wanted,
                near: match self.without_first_name() {
                    Some(rest) => vec![rest],
                    None => self.near_names(&parent, &missing),
                },
            },
            other => other.into(),
        }
    }

    /// The path without its first name, if something is there. Agents put the name of the root, or of a directory above it,
    /// before paths.
    fn without_first_name(&self) -> Option<String> {
        let given = self.path.as_given().trim_start_matches('/');
        let (_, rest) = given.split_once('/')?;
        let place = Place::new(Arc::clone(&self.root), rest).ok()?;
        place.is_there().then(|| rest.to_owned())
    }

    /// The paths of entries in `parent` that look like `missing`. This only helps a message, so its own failures are ignored.
    fn near_names(&self, parent: &str, missing: &str) -> Vec<String> {
        let names = || -> sandbox::Result<Vec<String>> {
            let parent = RelPath::parse(parent)?;
            let dir = self.root.locate(&parent, Follow::Last)?.open_dir()?;
            let mut names = Vec::new();
            dir.for_each_entry(&mut |entry| {
                if names.len() < NAMES_COMPARED {
                    names.push(entry.name.shown().into_owned());
                }
            })?;
            Ok(names)
        };
        let near = names().map_or_else(|_| Vec::new(), |names| near::near_matches(missing, names));
        // As paths, so that a client can use them as they are.
        match parent {
            "" | "." => near,
            parent => near.iter().map(|name| format!("{parent}/{name}")).collect(),
        }
    }
}

fn require_file(located: &Located<'_>, metadata: &Metadata) -> Result<()> {
    match metadata.kind {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(Error::IsADirectory {
            path: located.path(),
        }),
        kind => Err(Error::NotAFile {
            path: located.path(),
            kind,
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::error::ErrorKind;
    use crate::testing::Tree;

    #[test]
    fn an_absolute_path_is_outside_where_only_relative_ones_count() {
        let tree = Tree::new();
        let failure = tree.place("/file").relative().unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Outside);
        for path in ["file", "", ".", "a/b/"] {
            assert!(tree.place(path).relative().is_ok());
        }
    }
}
