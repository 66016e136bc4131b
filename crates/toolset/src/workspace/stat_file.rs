//! `stat_file`: what is known of a file, directory or link.

use ops::{ContentType, FileKind, LinkStatus, LinkTarget, Metadata, Operation, Stat};
use schemars::JsonSchema;
use serde::Serialize;

use super::path_arguments::PathArguments;
use super::versions::{add_version, may_change, told};
use crate::deployment::ReplyHalves;
use crate::iso_time::iso;
use crate::text_form::{TextLines, shown, to_the_second};
use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct StatFile;

/// What is known of it. For a symlink the facts are its target's, and its own stand under link.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// Its name.
    name: String,
    /// Its path, relative to the root.
    path: String,
    /// The facts.
    #[serde(flatten)]
    facts: StatFacts,
    /// Whether it is a directory; for a symlink, whether its target is.
    is_directory: bool,
    /// Whether the path itself is a symlink.
    is_symlink: bool,
    /// The symlink itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<Link>,
    /// The version of a file, for if_version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// True if the name's bytes are not UTF-8; the name shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

#[derive(Serialize, JsonSchema)]
struct StatFacts {
    /// file, directory, symlink, or the kind of special file.
    #[serde(rename = "type")]
    kind: String,
    /// Size in bytes; for a directory that of the entry, not of its content.
    size: u64,
    /// When the content last changed, ISO 8601.
    modified_at: String,
    /// When it was made, ISO 8601, if the file system remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Link {
    /// The link's own facts.
    #[serde(flatten)]
    facts: StatFacts,
    /// Where it leads, relative to the root; left out if nothing is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// True if the target does not exist.
    dangling: bool,
}

impl Tool for StatFile {
    type Arguments = PathArguments;
    type Reply = Reply;

    const NAME: &'static str = "stat_file";
    const TITLE: &'static str = "File metadata";
    const DESCRIPTION: &'static str = "Tells type, size and times of a file or directory; for a symlink, both its own and its target's. For owner \
        and mode use permissions_file.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn run(arguments: PathArguments, call: &Call) -> ops::Result<Reply> {
        let status = Stat {
            place: call.place(&arguments.path)?.versioned(None),
            content_type: ContentType::Skip,
        }
        .run(&call.context)?;
        Ok(Reply {
            name: status.name,
            path: status.path,
            facts: facts(&status.metadata),
            is_directory: status.metadata.kind == FileKind::Directory,
            is_symlink: status.link.is_some(),
            link: status.link.map(link),
            version: told(status.version.as_ref()).filter(|_| may_change(&arguments.root, call)),
            invalid_utf8: status.invalid_utf8,
            root: arguments.root,
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        lines.fact("path", Some(shown(&reply.path)));
        add_facts(&mut lines, &reply.facts);
        if let Some(link) = &reply.link {
            let leads = match &link.target {
                Some(target) => format!("leads to {}", shown(target)),
                None => "leads to nothing".to_owned(),
            };
            lines.fact("symlink", Some(leads));
        }
        add_version(&mut lines, reply.version.as_deref());
        Some(lines.finish())
    }
}

fn add_facts(lines: &mut TextLines, facts: &StatFacts) {
    lines
        .fact("type", Some(&facts.kind))
        .fact("size", Some(facts.size))
        .fact("modified_at", Some(to_the_second(&facts.modified_at)))
        .fact("created_at", facts.created_at.as_deref().map(to_the_second));
}

fn facts(metadata: &Metadata) -> StatFacts {
    StatFacts {
        kind: metadata.kind.to_string(),
        size: metadata.size,
        modified_at: iso(metadata.modified),
        created_at: metadata.created.map(iso),
    }
}

fn link(link: LinkStatus) -> Link {
    let facts = facts(&link.metadata);
    match link.target {
        LinkTarget::Inside { path, .. } => Link {
            facts,
            target: Some(path),
            dangling: false,
        },
        LinkTarget::Dangling | LinkTarget::Outside | LinkTarget::Loop => Link {
            facts,
            target: None,
            dangling: true,
        },
    }
}
