//! Where an operation works: a root and a path inside it, and how it is looked up.
//!
//! Every operation looks paths up here, so that one place knows what to say of a missing path: what was expected
//! there, and which names are near.

use std::sync::Arc;

use sandbox::{FileKind, Follow, Located, Metadata, OpenFile, RelPath, Root};
use unicode_normalization::UnicodeNormalization;

use crate::error::{Error, Result, Wanted};
use crate::text::near_names;
use crate::version::Versioning;

/// How many names of a directory are compared with a missing one.
const NAMES_COMPARED: usize = 10_000;
/// How many names of a directory that is not empty are told.
const NAMES_TOLD: usize = 10;
/// How many names of a missing path are looked at, to find a link that leads to nothing.
const LINKS_LOOKED_AT: usize = 64;

/// A path inside a root, parsed and not yet looked up.
#[derive(Debug, Clone)]
pub struct Place {
    /// The root.
    pub root: Arc<Root>,
    /// The path inside it.
    pub path: RelPath,
    /// What the call needs the version for.
    pub(crate) versioning: Versioning,
}

impl Place {
    /// Parses a client's path.
    pub fn new(root: Arc<Root>, path: &str) -> Result<Place> {
        let path = RelPath::parse(path)?;
        let path = root.inside_of_host_path(&path).unwrap_or(path);
        Ok(Place {
            root,
            path,
            versioning: Versioning::None,
        })
    }

    /// Returns this place unless its path begins with `/`: a client that knows only one storage would mean the host's root.
    pub fn relative(self) -> Result<Place> {
        if self.path.is_absolute() {
            let path = self.path.as_given().to_owned();
            return Err(Error::Outside {
                leads_to: path.clone(),
                link: None,
                path,
            });
        }
        Ok(self)
    }

    /// Tells whether it is written like another one. Two that differ may still be the same file.
    pub(crate) fn is_same(&self, other: &Place) -> bool {
        let is_same_root = self.root.is_same(&other.root);
        is_same_root && self.path == other.path && self.versioning == other.versioning
    }

    /// Looks it up. A missing last part is not an error yet.
    pub(crate) fn locate(&self, follow: Follow) -> Result<Located<'_>> {
        Ok(self.root.locate(&self.path, follow)?)
    }

    /// Looks it up. For a hidden path the error is the same as for a missing one, with the same hints.
    pub(crate) fn locate_wanted(&self, follow: Follow, wanted: Wanted) -> Result<Located<'_>> {
        let located = self.root.locate(&self.path, follow);
        located.map_err(|error| self.explain(error, wanted))
    }

    /// Looks up something that must be there, to read it. Not for removing or moving, which need the exact name.
    pub(crate) fn existing(
        &self,
        follow: Follow,
        wanted: Wanted,
    ) -> Result<(Located<'_>, Metadata)> {
        let located = self.locate_wanted(follow, wanted)?;
        match located.require() {
            Ok(metadata) => Ok((located, metadata)),
            Err(error) => match self.in_other_form(follow) {
                Some(found) => Ok(found),
                None => Err(self.explain(error, wanted)),
            },
        }
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
        let (located, _) = self.existing_file(wanted)?;
        located
            .open_file()
            .map_err(|error| self.explain(error, wanted))
    }

    /// The path with the same letters in another Unicode form, such as `é` as one character or as two. Each missing
    /// name must match exactly one entry.
    fn in_other_form(&self, follow: Follow) -> Option<(Located<'_>, Metadata)> {
        let given = self.path.as_given();
        if given.is_ascii() {
            return None;
        }
        let mut path = String::new();
        for (index, name) in given.split('/').enumerate() {
            let parent = path.clone();
            if index > 0 {
                path.push('/');
            }
            path.push_str(name);
            let is_there =
                || Place::new(Arc::clone(&self.root), &path).is_ok_and(|it| it.is_there());
            if !name.is_ascii() && !is_there() {
                let other = self.only_in_other_form(&parent, name)?;
                path.truncate(path.len() - name.len());
                path.push_str(&other);
            }
        }
        let located = self
            .root
            .locate(&RelPath::parse(&path).ok()?, follow)
            .ok()?;
        let metadata = located.require().ok()?;
        Some((located, metadata))
    }

    /// The only entry of a directory whose name has these letters.
    fn only_in_other_form(&self, parent: &str, name: &str) -> Option<String> {
        let wanted: String = name.nfc().collect();
        let mut same = self.names_in(parent).ok()?;
        same.retain(|other| other.nfc().eq(wanted.chars()));
        same.pop().filter(|_| same.is_empty())
    }

    /// The resolved path, whether or not something is there.
    pub fn resolved(&self) -> Result<String> {
        Ok(self.locate(Follow::Last)?.path())
    }

    /// The resolved path of a directory that must be there.
    pub fn resolved_directory(&self) -> Result<String> {
        let (located, metadata) = self.existing(Follow::Last, Wanted::Directory)?;
        match metadata.kind {
            FileKind::Directory => Ok(located.path()),
            _ => Err(Error::NotADirectory {
                path: self.path.as_given().to_owned(),
            }),
        }
    }

    /// Fails if the path leads out. Anything else that is wrong with it is reported on use.
    pub fn check_inside(&self) -> Result<()> {
        match self.locate(Follow::Never) {
            Err(error @ Error::Outside { .. }) => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds what the directory holds to a "not empty" error. Security: what the view hides is not named.
    pub(crate) fn with_names(&self, error: Error) -> Error {
        let Error::DirectoryNotEmpty { path, .. } = error else {
            return error;
        };
        let mut names = self.names_in(self.path.as_given()).unwrap_or_default();
        names.sort_unstable();
        names.truncate(NAMES_TOLD);
        Error::DirectoryNotEmpty { path, names }
    }

    /// Fails if the directory that it is in is missing.
    pub fn require_parent(&self) -> Result<()> {
        let located = self.locate(Follow::Never)?;
        if located.is_root() || located.metadata().is_some() || located.is_only_last_missing() {
            return Ok(());
        }
        let missing = located.require().err();
        missing.map_or(Ok(()), |error| Err(self.explain(error, Wanted::Directory)))
    }

    /// The resolved path on the host, for sets that show it.
    pub fn host_path(&self) -> Result<String> {
        Ok(self.locate(Follow::Last)?.host_path())
    }

    /// Whether something is there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let located = self.locate(Follow::Never);
        located.is_ok_and(|located| located.metadata().is_some())
    }

    /// Fails if this is the root's top and its directory was removed: an empty listing would be wrong.
    pub(crate) fn refuse_removed_top(&self) -> Result<()> {
        let is_top = self
            .locate(Follow::Last)
            .is_ok_and(|located| located.is_root());
        if is_top && self.root.is_removed() {
            return Err(Error::NotFound {
                path: self.path.as_given().to_owned(),
                wanted: Wanted::Directory,
                near: Vec::new(),
                denied: false,
            });
        }
        Ok(())
    }

    /// Opens a regular file if that needs no waiting.
    pub(crate) fn try_open_inline(&self) -> Option<OpenFile> {
        self.root.try_open_inline(&self.path)
    }

    /// Tells whether a file is large, as far as that is known without waiting.
    #[must_use]
    pub fn is_large_inline(&self) -> bool {
        let open = self.try_open_inline();
        open.is_some_and(|open| open.metadata.size > crate::read::LARGE)
    }

    /// Looks up where a file is to be written: a missing place, or a regular file.
    pub(crate) fn file_to_write(&self) -> Result<Located<'_>> {
        // If a written file is missing, its directory is what was not found.
        self.file_or_missing(Wanted::Directory)
    }

    fn file_or_missing(&self, wanted: Wanted) -> Result<Located<'_>> {
        let located = self.locate_wanted(Follow::Last, wanted)?;
        match located.metadata() {
            Some(metadata) => require_file(&located, metadata)?,
            // The root itself has no metadata here either.
            None if located.is_root() || self.path.must_be_directory() => {
                return Err(Error::IsADirectory {
                    path: self.path.as_given().to_owned(),
                });
            }
            None => {
                let visible = located.require_place_for_file();
                visible.map_err(|error| self.explain(error, wanted))?;
            }
        }
        Ok(located)
    }

    /// Looks up a file that is to be edited: one that is there, if need be under the same letters in another Unicode form,
    /// or a missing place.
    pub(crate) fn file_to_edit(&self) -> Result<Located<'_>> {
        let located = self.file_or_missing(Wanted::File)?;
        if located.metadata().is_some() {
            return Ok(located);
        }
        match self.in_other_form(Follow::Last) {
            Some((other, metadata)) => require_file(&other, &metadata).map(|()| other),
            None => Ok(located),
        }
    }

    /// Adds to "not found" what was wanted and which names are near. Security: in a view, nothing is said about the
    /// target of a link, because a link to something hidden must look like a dangling one.
    pub(crate) fn explain(&self, error: sandbox::Error, wanted: Wanted) -> Error {
        match error {
            sandbox::Error::NotFound {
                path,
                parent,
                missing,
                denied,
            } => match self.dangling_link().filter(|_| !self.root.has_view()) {
                Some((link, target)) => Error::Dangling {
                    path,
                    wanted,
                    link,
                    target,
                },
                None => Error::NotFound {
                    path,
                    wanted,
                    near: match self.without_first_name() {
                        Some(rest) => vec![rest],
                        None => self.near_names(&parent, &missing),
                    },
                    denied,
                },
            },
            other => other.into(),
        }
    }

    /// The first dangling link on the way, and the path inside the root that it leads to.
    fn dangling_link(&self) -> Option<(String, String)> {
        let given = self.path.as_given();
        let ends = given.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([given.len()]).take(LINKS_LOOKED_AT) {
            let path = given.get(..end).filter(|path| !path.is_empty())?;
            let link = self.root.locate(&RelPath::parse(path).ok()?, Follow::Never);
            let link = link.ok()?;
            match link.metadata()?.kind {
                FileKind::Symlink => {}
                _ => continue,
            }
            if let Some(target) = link.dangling_target() {
                return Some((link.path(), target));
            }
        }
        None
    }

    /// The path without its first name, if that exists. Agents put the name of the root, or of a directory above it,
    /// before paths.
    fn without_first_name(&self) -> Option<String> {
        let given = self.path.as_given().trim_start_matches('/');
        let (_, rest) = given.split_once('/')?;
        let place = Place::new(Arc::clone(&self.root), rest).ok()?;
        place.is_there().then(|| rest.to_owned())
    }

    /// The names of a directory's entries, or the first of very many.
    fn names_in(&self, directory: &str) -> sandbox::Result<Vec<String>> {
        let directory = RelPath::parse(directory)?;
        let dir = self.root.locate(&directory, Follow::Last)?.open_dir()?;
        let mut names = Vec::new();
        dir.for_each_entry(&mut |entry| {
            if names.len() < NAMES_COMPARED {
                names.push(entry.name.shown().into_owned());
            }
        })?;
        Ok(names)
    }

    /// The paths of entries in `parent` that look like `missing`. This only helps a message, so its own failures are ignored.
    fn near_names(&self, parent: &str, missing: &str) -> Vec<String> {
        let names = self.names_in(parent).unwrap_or_default();
        let near = near_names::near_matches(missing, names);
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
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::Tree;

    #[test]
    fn a_host_path_is_a_path_inside_if_the_root_takes_such_paths() {
        let tree = Tree::with(&[("a.md", "text"), ("dir/b", "deep")]);
        let host = |path: &str| tree.host(path).display().to_string();
        let taking = Arc::new(Root::open(&tree.host("")).unwrap().taking_host_paths());
        let read = |root: &Arc<Root>, path: &str| {
            let place = Place::new(Arc::clone(root), path).unwrap();
            let located = place.existing_file(Wanted::File)?.0;
            assert!(
                Place::new(Arc::clone(root), path)
                    .unwrap()
                    .relative()
                    .is_err()
            );
            Ok::<String, Error>(located.path())
        };
        assert_eq!(read(&taking, &host("a.md")).unwrap(), "a.md");
        assert_eq!(read(&taking, &host("dir//./b")).unwrap(), "dir/b");
        assert_eq!(read(&taking, &host("zz/../a.md")).unwrap(), "a.md");
        assert_eq!(read(&taking, "/a.md").unwrap(), "a.md");
        // One that leads out again, one beside it, and any of them if the root does not take them.
        let out = read(&taking, &host("../outside/secret")).unwrap_err();
        assert_eq!(out.kind(), ErrorKind::Outside);
        let beside = format!("{}-twin/a.md", host("").trim_end_matches('/'));
        assert_eq!(
            read(&taking, &beside).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        let plain = read(&tree.root, &host("a.md")).unwrap_err();
        assert_eq!(plain.kind(), ErrorKind::NotFound);
        // An entry of the root with the same name as the first directory of the host path.
        let first = host("").split('/').nth(1).unwrap().to_owned();
        tree.directory(&first);
        assert!(read(&taking, &host("a.md")).is_err());
    }

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
