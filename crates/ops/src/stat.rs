//! Tells what is known of a file, directory or link.

use sandbox::{Access, FileKind, Follow, LinkTarget, Located, Metadata};

use crate::context::Context;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::remove::leads_outside;

/// Asks what is known of a path.
#[derive(Debug)]
pub struct Stat {
    /// What to look at.
    pub place: Place,
}

/// What a link itself is, beside what it leads to.
#[derive(Debug)]
pub struct LinkStatus {
    /// The link's own facts.
    pub metadata: Metadata,
    /// Where it leads: inside, nowhere, or in circles.
    pub target: LinkTarget,
}

/// What is known of a path.
#[derive(Debug)]
pub struct Status {
    /// The path of the thing itself: of the link where it is one.
    pub path: String,
    /// Its name as clients see it; empty for the root.
    pub name: String,
    /// Whether the name begins with a dot.
    pub hidden: bool,
    /// Whether the name's bytes are not UTF-8.
    pub invalid_utf8: bool,
    /// The facts; of the target where it is a link that leads to something.
    pub metadata: Metadata,
    /// What this process may do with it.
    pub access: Access,
    /// The link's own side, where it is one.
    pub link: Option<LinkStatus>,
}

impl Operation for Stat {
    type Outcome = Status;

    fn run(self, context: &Context) -> Result<Status> {
        context.cancel.check()?;
        let (located, metadata) = self.place.existing(Follow::Never, Wanted::Anything)?;
        match metadata.kind {
            FileKind::Symlink => self.link(&located, metadata),
            _ => Ok(status(&located, metadata, located.access(), None)),
        }
    }
}

impl Stat {
    fn link(&self, located: &Located<'_>, own: Metadata) -> Result<Status> {
        let target = located.link_target()?;
        let (metadata, access) = match &target {
            LinkTarget::Inside { metadata, .. } => {
                (*metadata, self.place.locate(Follow::Last)?.access())
            }
            LinkTarget::Dangling | LinkTarget::Loop => (own, located.access()),
            LinkTarget::Outside => return Err(leads_outside(&self.place)),
        };
        let link = LinkStatus {
            metadata: own,
            target,
        };
        Ok(status(located, metadata, access, Some(link)))
    }
}

fn status(
    located: &Located<'_>,
    metadata: Metadata,
    access: Access,
    link: Option<LinkStatus>,
) -> Status {
    let name = located.name();
    Status {
        path: located.path(),
        name: name
            .map(|name| name.shown().into_owned())
            .unwrap_or_default(),
        hidden: name.is_some_and(|name| name.is_hidden()),
        invalid_utf8: name.is_some_and(|name| name.is_invalid_utf8()),
        metadata,
        access,
        link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::testing::{Tree, context};

    fn stat(tree: &Tree, path: &str) -> Result<Status> {
        Stat {
            place: tree.place(path),
        }
        .run(&context())
    }

    #[test]
    fn files_and_directories_tell_what_they_are() {
        let tree = Tree::new();
        tree.file("dir/.hidden", "12345")
            .set_mode("dir/.hidden", 0o600);
        let status = stat(&tree, "dir/./.hidden").unwrap();
        assert_eq!(
            (status.path.as_str(), status.name.as_str()),
            ("dir/.hidden", ".hidden")
        );
        assert_eq!(
            (status.metadata.size, status.metadata.kind),
            (5, FileKind::File)
        );
        assert!(status.hidden && status.link.is_none() && status.access.readable);
        assert!(!status.access.executable);
        let root = stat(&tree, "").unwrap();
        assert_eq!((root.path.as_str(), root.name.as_str()), (".", ""));
        assert_eq!(root.metadata.kind, FileKind::Directory);
    }

    #[test]
    fn links_tell_both_sides() {
        let tree = Tree::new();
        tree.file("target", "12345")
            .link("link", "target")
            .link("dangling", "nowhere");
        tree.link("loop", "loop").link("out", "../outside/secret");
        let status = stat(&tree, "link").unwrap();
        assert_eq!((status.path.as_str(), status.metadata.size), ("link", 5));
        let link = status.link.unwrap();
        assert_eq!(link.metadata.kind, FileKind::Symlink);
        assert!(matches!(link.target, LinkTarget::Inside { path, .. } if path == "target"));
        for path in ["dangling", "loop"] {
            assert_eq!(
                stat(&tree, path).unwrap().metadata.kind,
                FileKind::Symlink,
                "{path}"
            );
        }
        assert_eq!(stat(&tree, "out").unwrap_err().kind(), ErrorKind::Outside);
    }

    #[test]
    fn a_missing_name_has_near_ones() {
        let tree = Tree::new();
        tree.file("dir/report.txt", "").file("dir/unlike", "");
        let failure = stat(&tree, "dir/reprot.txt").unwrap_err();
        let Error::NotFound { path, wanted, near } = failure else {
            panic!("{failure:?}")
        };
        assert_eq!(
            (path.as_str(), wanted),
            ("dir/reprot.txt", Wanted::Anything)
        );
        assert_eq!(near, ["report.txt"]);
    }

    #[test]
    fn names_that_are_not_utf8_go_round() {
        let tree = Tree::new();
        tree.file_named(b"a\xff", "content");
        let status = stat(&tree, "a\u{F7FF}").unwrap();
        assert!(status.invalid_utf8);
        assert_eq!(
            (status.name.as_str(), status.metadata.size),
            ("a\u{F7FF}", 7)
        );
    }
}
