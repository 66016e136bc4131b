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
        let link = LinkStatus { metadata: own, target };
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
        name: name.map(|name| name.shown().into_owned()).unwrap_or_default(),
        hidden: name.is_some_and(|name| name.is_hidden()),
        invalid_utf8: name.is_some_and(|name| name.is_invalid_utf8()),
        metadata,
        access,
        link,
    }
}
