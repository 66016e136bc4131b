//! Paths of the host, for sets whose clients give and get such paths.
//!
//! A path is only parsed here: which root it leads into, and which path inside that root it means. `.` and `..` are
//! removed textually, as the programs that send such paths do. What is left is looked up like any other path of a
//! client.

use std::collections::BTreeMap;
use std::sync::Arc;

use ops::{Error, Place, Root, is_within};

use crate::deployment::Deployment;

/// The host paths of a call's places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNames {
    /// Absolute, in the order of the places and then of the listed ones; empty for a place without a path.
    pub paths: Vec<String>,
    /// The directories that are served.
    pub served: Vec<String>,
}

/// The directories of the host that a client works in.
#[derive(Debug, Clone, Default)]
pub struct HostDirectories {
    directories: Vec<HostDirectory>,
    home: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostDirectory {
    /// The number of its root in the deployment.
    root: usize,
    /// Its names: as it was given, and with links resolved if that differs.
    spellings: Vec<String>,
    /// Where in the root it is; empty for the root itself.
    inside: String,
}

/// Where a path on the host leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostPlace {
    /// The whole path.
    pub(crate) absolute: String,
    /// The number of the root and the path in it; `None` if it leads into no root.
    pub(crate) inside: Option<(usize, String)>,
}

/// Directories in one root that a client named: their numbers in its order, their whole paths, and the paths in the root.
#[derive(Debug, Default)]
pub(crate) struct NamedDirectories(Vec<(usize, String, String)>);

/// A directory of a client that is there.
#[derive(Debug)]
pub(crate) struct FoundDirectory {
    number: usize,
    directory: HostDirectory,
}

impl NamedDirectories {
    /// Those that are there. Reads directories, which may block.
    pub(crate) fn directories(self, root: usize, open: &Arc<Root>) -> Vec<FoundDirectory> {
        let named = self.0.into_iter();
        let found = named.filter_map(|(number, absolute, inside)| {
            let directory = directory_inside(root, open, absolute, &inside)?;
            Some(FoundDirectory { number, directory })
        });
        found.collect()
    }
}

fn directory_inside(
    root: usize,
    open: &Arc<Root>,
    absolute: String,
    inside: &str,
) -> Option<HostDirectory> {
    let found = Place::new(Arc::clone(open), inside).ok()?;
    let resolved = found.resolved_directory().ok()?;
    let real = open.host_path(&resolved);
    let mut spellings = vec![absolute];
    if spellings.first() != Some(&real) {
        spellings.push(real);
    }
    Some(HostDirectory {
        root,
        spellings,
        inside: if resolved == "." {
            String::new()
        } else {
            resolved
        },
    })
}

impl HostDirectories {
    /// The roots of a deployment.
    pub(crate) fn of(deployment: &Deployment) -> HostDirectories {
        let roots = deployment.roots.iter().enumerate();
        let directory = |(root, grant): (usize, &crate::RootGrant)| HostDirectory {
            root,
            spellings: grant
                .root
                .current()
                .map(|root| root.host_spellings())
                .unwrap_or_default(),
            inside: String::new(),
        };
        HostDirectories {
            directories: roots.map(directory).collect(),
            home: deployment.home.clone(),
        }
    }

    /// Every name of every directory, in order.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let all = self.directories.iter().flat_map(|one| &one.spellings);
        all.cloned().collect()
    }

    /// Where a path of a client leads.
    pub(crate) fn look_up(&self, given: &str) -> HostPlace {
        let given = self.with_home(given);
        if given.starts_with('/') {
            return self.at(normalized(&given));
        }
        let mut candidates = self.spellings().into_iter();
        let mut candidates = candidates
            .by_ref()
            .map(|directory| self.at(normalized(&format!("{directory}/{given}"))))
            .peekable();
        let first = candidates.peek().cloned();
        let inside = candidates.find(|place| place.inside.is_some());
        inside.or(first).unwrap_or(HostPlace {
            absolute: given,
            inside: None,
        })
    }

    /// The root and the path in it that a path of a client means.
    pub(crate) fn inside(&self, given: &str) -> ops::Result<(usize, String)> {
        if is_of_windows(given) {
            return Err(Error::InvalidArgument {
                argument: "path",
                reason: format!("Windows-style path received on a POSIX host: {given}"),
            });
        }
        let place = self.look_up(given);
        place.inside.ok_or(Error::Outside {
            path: given.to_owned(),
            leads_to: place.absolute,
            link: None,
        })
    }

    /// The directories that a client names as its roots, by the root of ours that they would be in.
    pub(crate) fn named_by_root(&self, uris: &[String]) -> BTreeMap<usize, NamedDirectories> {
        let mut by_root = BTreeMap::<usize, NamedDirectories>::new();
        for (number, path) in uris.iter().filter_map(|uri| path_of(uri)).enumerate() {
            let place = self.look_up(&path);
            if let Some((root, inside)) = place.inside {
                let named = by_root.entry(root).or_default();
                named.0.push((number, place.absolute, inside));
            }
        }
        by_root
    }

    /// Only these of a client's directories, in its order; `None` if there is none.
    pub(crate) fn narrowed_to(&self, mut found: Vec<FoundDirectory>) -> Option<HostDirectories> {
        found.sort_unstable_by_key(|found| found.number);
        let directories: Vec<HostDirectory> =
            found.into_iter().map(|found| found.directory).collect();
        (!directories.is_empty()).then(|| HostDirectories {
            directories,
            home: self.home.clone(),
        })
    }

    /// The innermost directory decides: an outer one cannot allow what the inner one forbids.
    fn at(&self, absolute: String) -> HostPlace {
        let named = self.directories.iter().flat_map(|directory| {
            let spellings = directory.spellings.iter();
            spellings.map(move |spelling| (directory, spelling))
        });
        let around = named.filter(|(_, spelling)| is_within(&absolute, spelling));
        let innermost = around.max_by_key(|(_, spelling)| spelling.len());
        let inside = innermost.map(|(directory, spelling)| {
            let rest = absolute.get(spelling.len()..).unwrap_or_default();
            let rest = rest.trim_start_matches('/');
            let parts = [directory.inside.as_str(), rest];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let path = match parts.as_slice() {
                [] => ".".to_owned(),
                parts => parts.join("/"),
            };
            (directory.root, path)
        });
        HostPlace { absolute, inside }
    }

    fn with_home(&self, given: &str) -> String {
        match (&self.home, given.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                format!("{home}{rest}")
            }
            _ => given.to_owned(),
        }
    }
}

/// The directories of a call, with those of their roots that it may use.
#[derive(Debug)]
pub(crate) struct HostRoots {
    directories: Arc<HostDirectories>,
    /// By their numbers; `None` if the tool is not allowed or the directory is gone.
    roots: Vec<Option<Arc<Root>>>,
}

impl HostRoots {
    pub(crate) fn new(
        directories: Arc<HostDirectories>,
        roots: Vec<Option<Arc<Root>>>,
    ) -> HostRoots {
        HostRoots { directories, roots }
    }

    /// The directories.
    pub(crate) fn directories(&self) -> &HostDirectories {
        &self.directories
    }

    /// The place that a path of a client means.
    pub(crate) fn place(&self, given: &str) -> ops::Result<Place> {
        let (root, inside) = self.directories.inside(given)?;
        let open = self.roots.get(root).and_then(Option::as_ref);
        let Some(open) = open else {
            return Err(Error::PermissionDenied { path: inside });
        };
        let place = Place::new(Arc::clone(open), &inside)?;
        self.check_narrowed(root, &place)?;
        Ok(place)
    }

    /// Refuses a link that leads out of the directories that the client works in. The operator's roots need no check
    /// here: in the sandbox, no look-up leaves a root.
    fn check_narrowed(&self, root: usize, place: &Place) -> ops::Result<()> {
        let own = self.directories.directories.iter();
        let mut own = own.filter(|one| one.root == root).peekable();
        if own.clone().any(|one| one.inside.is_empty()) || own.peek().is_none() {
            return Ok(());
        }
        let resolved = place.resolved()?;
        if own.any(|one| is_within(&resolved, &one.inside)) {
            return Ok(());
        }
        Err(Error::Outside {
            path: place.path.as_given().to_owned(),
            leads_to: resolved,
            link: Some(place.path.as_given().to_owned()),
        })
    }
}

/// A path without `.`, `..` and empty names.
fn normalized(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Whether a path begins with a drive letter.
fn is_of_windows(path: &str) -> bool {
    let mut characters = path.chars();
    let is_drive = characters
        .next()
        .is_some_and(|drive| drive.is_ascii_alphabetic());
    is_drive
        && characters.next() == Some(':')
        && matches!(characters.next(), None | Some('/' | '\\'))
}

/// The path that a root of a client names: a `file://` URI, or a path.
fn path_of(uri: &str) -> Option<String> {
    let Some(rest) = uri.strip_prefix("file://") else {
        return Some(uri.to_owned()).filter(|path| !path.contains("://"));
    };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.starts_with('/').then(|| decoded(path)).flatten()
}

/// Decodes percent escapes; `None` if the result is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let escape = more.get(..2).filter(|_| *first == b'%');
        let escape = escape.and_then(|digits| std::str::from_utf8(digits).ok());
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = more.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories(all: &[(usize, &[&str], &str)]) -> HostDirectories {
        let directory = |(root, spellings, inside): &(usize, &[&str], &str)| HostDirectory {
            root: *root,
            spellings: spellings.iter().map(|one| (*one).to_owned()).collect(),
            inside: (*inside).to_owned(),
        };
        HostDirectories {
            directories: all.iter().map(directory).collect(),
            home: Some("/home/ann".to_owned()),
        }
    }

    fn told(hosts: &HostDirectories, given: &str) -> (String, Option<(usize, String)>) {
        let place = hosts.look_up(given);
        (place.absolute, place.inside)
    }

    #[test]
    fn a_path_leads_into_the_innermost_directory() {
        let hosts = directories(&[
            (0, &["/srv/a"], ""),
            (1, &["/srv/a/secret", "/real/secret"], ""),
        ]);
        let inside = |root, path: &str| Some((root, path.to_owned()));
        for (given, absolute, found) in [
            ("/srv/a", "/srv/a", inside(0, ".")),
            ("/srv/a/x/../y/", "/srv/a/y", inside(0, "y")),
            ("/srv/a/secret/k", "/srv/a/secret/k", inside(1, "k")),
            ("/real/secret/k", "/real/secret/k", inside(1, "k")),
            ("x/y", "/srv/a/x/y", inside(0, "x/y")),
            ("", "/srv/a", inside(0, ".")),
            ("../a/z", "/srv/a/z", inside(0, "z")),
            ("../../etc/passwd", "/etc/passwd", None),
            ("/srv/ab", "/srv/ab", None),
            ("/srv/a/../../etc", "/etc", None),
            ("~/x", "/home/ann/x", None),
            ("~x", "/srv/a/~x", inside(0, "~x")),
        ] {
            assert_eq!(told(&hosts, given), (absolute.to_owned(), found), "{given}");
        }
    }

    #[test]
    fn a_narrowed_directory_keeps_its_place_in_the_root() {
        let hosts = directories(&[(2, &["/srv/a/sub"], "sub")]);
        assert_eq!(
            hosts.look_up("/srv/a/sub/f").inside,
            Some((2, "sub/f".to_owned()))
        );
        assert_eq!(hosts.look_up("f").inside, Some((2, "sub/f".to_owned())));
        assert_eq!(hosts.look_up("/srv/a/f").inside, None);
    }

    #[test]
    fn paths_of_windows_are_refused() {
        for path in ["C:\\x", "c:/x", "d:"] {
            assert!(is_of_windows(path), "{path}");
        }
        for path in ["c:x", "cc:/x", "/c:/x", ""] {
            assert!(!is_of_windows(path), "{path}");
        }
    }

    #[test]
    fn roots_of_clients_are_uris_or_paths() {
        for (uri, path) in [
            ("file:///srv/a%20b", Some("/srv/a b")),
            ("file://localhost/srv", Some("/srv")),
            ("file:///srv#x", Some("/srv")),
            ("/srv", Some("/srv")),
            ("file://other/srv", None),
            ("https://x/srv", None),
            ("file:///%ff", None),
        ] {
            assert_eq!(path_of(uri).as_deref(), path, "{uri}");
        }
    }
}
