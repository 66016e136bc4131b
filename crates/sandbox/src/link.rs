//! Finds out where a link leads without touching anything outside the root.

use crate::error::{Error, Result};
use crate::located::Located;
use crate::metadata::Metadata;
use crate::rel_path::PathStep;
use crate::resolve::{Follow, Resolved, Start, Tail, walk_from};

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// To something inside the root.
    Inside {
        /// Its resolved path.
        path: String,
        /// What it is.
        metadata: Metadata,
    },
    /// To a missing path inside the root.
    Dangling,
    /// Out of the root.
    Outside,
    /// In a circle.
    Loop,
}

/// Follows the link at a place from the link's own directory.
pub(crate) fn target(place: &Located<'_>) -> Result<LinkTarget> {
    match follow(place) {
        Ok(found) => inside(place, found),
        Err(Error::Outside { .. }) => Ok(LinkTarget::Outside),
        Err(Error::Loop { .. }) => Ok(LinkTarget::Loop),
        Err(Error::NotFound { .. } | Error::NotADirectory { .. }) => Ok(LinkTarget::Dangling),
        Err(error) => Err(error),
    }
}

impl Located<'_> {
    /// The refusal of a link that leads outside, with where it leads.
    #[must_use]
    pub fn leads_outside(&self) -> Error {
        match follow(self) {
            Err(refusal @ Error::Outside { .. }) => refusal,
            // It was changed since it was examined.
            _ => Error::Outside {
                path: self.given().to_owned(),
                leads_to: String::new(),
                link: Some(self.path()),
            },
        }
    }
}

impl Located<'_> {
    /// The path inside the root that a dangling link leads to; `None` for any other link.
    #[must_use]
    pub fn dangling_target(&self) -> Option<String> {
        // Security: a link to something hidden is an error here, so that its target is not revealed.
        let found = follow(self).ok()?;
        let is_missing = matches!(found.tail, Tail::Missing { .. });
        let target = Located::new(self.root(), self.given().to_owned(), found);
        is_missing.then(|| target.path())
    }
}

/// Looks up what the link at a place leads to.
pub(crate) fn follow(place: &Located<'_>) -> Result<Resolved> {
    let (name, ..) = place.entry()?;
    let dir = place
        .parent()
        .try_clone_to_owned()
        .map_err(crate::copy_content::failed)?;
    let start = Start {
        dir: Some(dir),
        path: place.parent_path().to_vec(),
    };
    walk_from(
        place.root(),
        start,
        &[PathStep::Into(name.clone())],
        place.given(),
        Follow::Last,
    )
}

fn inside(place: &Located<'_>, found: Resolved) -> Result<LinkTarget> {
    if matches!(found.tail, Tail::Missing { .. }) {
        return Ok(LinkTarget::Dangling);
    }
    let target = Located::new(place.root(), place.given().to_owned(), found);
    Ok(LinkTarget::Inside {
        path: target.path(),
        metadata: target.require()?,
    })
}
