//! `info`: what is known of a path, also that nothing is there.

use ops::{ContentType, Error, FileStatus, Operation, Stat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::iso_time::iso;
use crate::text_form::{TextLines, shown, to_the_second};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct Info;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

/// What is known of it. For a symlink the facts are its target's.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Whether the path exists; if not, only name and path follow.
    exists: bool,
    /// Its name; empty for the root.
    name: String,
    /// Its path, relative to the root.
    path: String,
    /// Everything else.
    #[serde(flatten)]
    facts: Option<InfoFacts>,
}

#[derive(Serialize, JsonSchema)]
struct InfoFacts {
    /// file, directory, symlink (one that leads to nothing), or the kind of special file.
    #[serde(rename = "type")]
    kind: String,
    /// Size in bytes; for a directory that of the entry, not of its content.
    size: u64,
    /// When it was made, ISO 8601, if the file system remembers.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// When the content last changed, ISO 8601.
    modified: String,
    /// When it was last read, ISO 8601.
    accessed: String,
    /// What the server may do with it.
    permissions: PermissionFlags,
    /// Whether its name begins with a dot.
    is_hidden: bool,
    /// Said only if it is true: the path is a symlink.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_symlink: bool,
    /// What a file holds, e.g. text/plain or image/png.
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    /// True if the name's bytes are not UTF-8; the path shown here still opens it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    invalid_utf8: bool,
}

#[derive(Serialize, JsonSchema)]
struct PermissionFlags {
    /// May be read.
    readable: bool,
    /// May be written.
    writable: bool,
    /// May be run, or entered.
    executable: bool,
}

impl PermissionFlags {
    /// What the server may do with the file, in words.
    fn words(&self) -> String {
        let all = [
            (self.readable, "read"),
            (self.writable, "write"),
            (self.executable, "execute"),
        ];
        let words: Vec<&str> = all
            .iter()
            .filter(|(may, _)| *may)
            .map(|one| one.1)
            .collect();
        words.join(", ")
    }
}

impl Tool for Info {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "info";
    const TITLE: &'static str = "File information";
    const DESCRIPTION: &'static str = "Tells what a path is: type, size, times, what the server may do with it, MIME type. A missing path is no error: exists is false.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let stat = Stat {
            place: place(call, &arguments.path)?,
            content_type: ContentType::Detect,
        };
        match stat.run(&call.context) {
            Ok(status) => Ok(there(status)),
            Err(Error::NotFound { path, .. } | Error::Dangling { path, .. }) => Ok(missing(path)),
            Err(error) => Err(error),
        }
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut lines = TextLines::default();
        lines.fact("path", Some(shown(&reply.path)));
        let Some(facts) = &reply.facts else {
            lines.line("exists: false");
            return Some(lines.finish());
        };
        lines
            .fact("type", Some(&facts.kind))
            .fact("size", Some(facts.size))
            .fact("modified", Some(to_the_second(&facts.modified)))
            .fact("created", facts.created.as_deref().map(to_the_second))
            .fact("accessed", Some(to_the_second(&facts.accessed)))
            .fact("mime_type", facts.mime_type)
            .fact("may", Some(facts.permissions.words()));
        Some(lines.finish())
    }
}

fn missing(path: String) -> Reply {
    let whole = path.trim_end_matches('/');
    let name = whole.rsplit('/').next().unwrap_or(whole).to_owned();
    Reply {
        exists: false,
        name,
        path,
        facts: None,
    }
}

fn there(status: FileStatus) -> Reply {
    let metadata = status.metadata;
    Reply {
        exists: true,
        name: status.name,
        path: status.path,
        facts: Some(InfoFacts {
            kind: metadata.kind.to_string(),
            size: metadata.size,
            created: metadata.created.map(iso),
            modified: iso(metadata.modified),
            accessed: iso(metadata.accessed),
            permissions: PermissionFlags {
                readable: status.access.readable,
                writable: status.access.writable,
                executable: status.access.executable,
            },
            is_hidden: status.hidden,
            is_symlink: status.link.is_some(),
            mime_type: status.mime_type,
            invalid_utf8: status.invalid_utf8,
        }),
    }
}
