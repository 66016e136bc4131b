//! Returns the metadata of a file, directory or link.

use sandbox::{FileAccess, FileKind, Follow, LinkTarget, Located, Metadata};

use crate::content_type::{by_name, content_type};
use crate::context::Context;
use crate::error::{Result, Wanted};
use crate::operation::Operation;
use crate::place::Place;
use crate::read_at::read_up_to;
use crate::text::encoding::HEAD;
use crate::version::Version;

/// Whether a file is opened to find out what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// The outcome has the MIME type of its content.
    Detect,
    /// The file is not opened.
    Skip,
}

/// Asks for the metadata of a path.
#[derive(Debug)]
pub struct Stat {
    /// What to look at.
    pub place: Place,
    /// Whether the MIME type is wanted.
    pub content_type: ContentType,
}

/// The link itself, besides its target.
#[derive(Debug)]
pub struct LinkStatus {
    /// The link's own facts.
    pub metadata: Metadata,
    /// Where it leads: inside, nowhere, or in a circle.
    pub target: LinkTarget,
}

/// The metadata of a path.
#[derive(Debug)]
pub struct FileStatus {
    /// The path of the thing itself: of the link if it is one.
    pub path: String,
    /// Its name as clients see it; empty for the root.
    pub name: String,
    /// Whether the name begins with a dot.
    pub hidden: bool,
    /// Whether the name's bytes are not UTF-8.
    pub invalid_utf8: bool,
    /// The facts; those of the target if it is a link that leads to something.
    pub metadata: Metadata,
    /// What this process may do with it.
    pub access: FileAccess,
    /// The link itself, if it is one.
    pub link: Option<LinkStatus>,
    /// The MIME type of a regular file, if that was asked for and could be found out.
    pub mime_type: Option<&'static str>,
    /// The version of a regular file, if the caller wants it.
    pub version: Option<Version>,
}

impl Operation for Stat {
    type Outcome = FileStatus;

    fn run(self, context: &Context) -> Result<FileStatus> {
        context.cancel.check()?;
        let (located, metadata) = self.place.existing(Follow::Never, Wanted::File)?;
        let mut status = match metadata.kind {
            FileKind::Symlink => self.link(&located, metadata)?,
            _ => status(&located, metadata, located.access(), None),
        };
        if self.content_type == ContentType::Detect && status.metadata.kind == FileKind::File {
            status.mime_type = self.mime_type(&status.name, context)?;
        }
        status.version = self.place.version_now(&context.cancel);
        Ok(status)
    }
}

impl Stat {
    /// Looks into the file. For a file that may not be opened, the name decides.
    fn mime_type(&self, name: &str, context: &Context) -> Result<Option<&'static str>> {
        let Ok(open) = self.place.locate(Follow::Last)?.open_file() else {
            return Ok(by_name(name));
        };
        let head = read_up_to(&open, 0, HEAD as u64, &context.cancel)?;
        Ok(Some(content_type(&head, name)))
    }

    fn link(&self, located: &Located<'_>, own: Metadata) -> Result<FileStatus> {
        let target = located.link_target()?;
        let (metadata, access) = match &target {
            LinkTarget::Inside { metadata, .. } => {
                (*metadata, self.place.locate(Follow::Last)?.access())
            }
            LinkTarget::Dangling | LinkTarget::Loop => (own, located.access()),
            LinkTarget::Outside => return Err(located.leads_outside().into()),
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
    access: FileAccess,
    link: Option<LinkStatus>,
) -> FileStatus {
    let name = located.name();
    FileStatus {
        path: located.path(),
        name: name
            .map(|name| name.shown().into_owned())
            .unwrap_or_default(),
        hidden: name.is_some_and(|name| name.is_hidden()),
        invalid_utf8: name.is_some_and(|name| name.is_invalid_utf8()),
        metadata,
        access,
        link,
        mime_type: None,
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Error, ErrorKind};
    use crate::testing::{Tree, context};

    fn stat(tree: &Tree, path: &str) -> Result<FileStatus> {
        Stat {
            place: tree.place(path),
            content_type: ContentType::Detect,
        }
        .run(&context())
    }

    #[test]
    fn files_and_directories_tell_what_they_are() {
        let tree = Tree::new();
        tree.file("dir/.hidden", "12345")
            .set_mode("dir/.hidden", 0o600);
        let status = stat(&tree, "dir/./.hidden").unwrap();
        assert_eq!(status.path.as_str(), "dir/.hidden");
        assert_eq!(status.name.as_str(), ".hidden");
        assert_eq!(status.metadata.size, 5);
        assert_eq!(status.metadata.kind, FileKind::File);
        assert!(status.hidden && status.link.is_none() && status.access.readable);
        assert!(!status.access.executable);
        let root = stat(&tree, "").unwrap();
        assert_eq!(root.path.as_str(), ".");
        assert_eq!(root.name.as_str(), "");
        assert_eq!(root.metadata.kind, FileKind::Directory);
    }

    #[test]
    fn files_tell_what_they_hold_where_that_is_asked() {
        let tree = Tree::new();
        tree.file("a.json", "{}")
            .link("link", "a.json")
            .fifo("pipe");
        let mime = |path| stat(&tree, path).unwrap().mime_type;
        assert_eq!(mime("a.json"), Some("application/json"));
        assert_eq!(mime("link"), Some("text/plain"), "the name is the link's");
        assert_eq!(mime(""), None);
        assert_eq!(mime("pipe"), None);
        let place = tree.place("a.json");
        let content_type = ContentType::Skip;
        let skipped = Stat {
            place,
            content_type,
        }
        .run(&context())
        .unwrap();
        assert_eq!(skipped.mime_type, None);
    }

    #[test]
    fn links_tell_both_sides() {
        let tree = Tree::new();
        tree.file("target", "12345")
            .link("link", "target")
            .link("dangling", "nowhere");
        tree.link("loop", "loop").link("out", "../outside/secret");
        let status = stat(&tree, "link").unwrap();
        assert_eq!(status.path.as_str(), "link");
        assert_eq!(status.metadata.size, 5);
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
        let Error::NotFound {
            path, wanted, near, ..
        } = failure
        else {
            panic!("{failure:?}")
        };
        assert_eq!(path.as_str(), "dir/reprot.txt");
        assert_eq!(wanted, Wanted::File);
        assert_eq!(near, ["dir/report.txt"]);
    }

    #[test]
    fn names_that_are_not_utf8_go_round() {
        let tree = Tree::new();
        tree.file_named(b"a\xff", "content");
        let status = stat(&tree, "a\u{F7FF}").unwrap();
        assert!(status.invalid_utf8);
        assert_eq!(status.name.as_str(), "a\u{F7FF}");
        assert_eq!(status.metadata.size, 7);
    }
}
