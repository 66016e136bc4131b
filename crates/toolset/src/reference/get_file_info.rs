//! `get_file_info`: what is known of a file or directory.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ops::{ContentType, FileKind, LinkTarget, Operation, Stat, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use super::content::Content;
use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::json_text::JsonText;
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect};

pub(super) struct GetFileInfo;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

impl Tool for GetFileInfo {
    type Arguments = Arguments;
    type Reply = Content;

    const NAME: &'static str = "get_file_info";
    const TITLE: &'static str = "Get File Info";
    const DESCRIPTION: &'static str = "Retrieve detailed metadata about a file or directory. Returns comprehensive information including size, \
        creation time, last modified time, permissions, and type. This tool is perfect for understanding file characteristics without reading the \
        actual content. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Content> {
        let stat = Stat {
            place: place(call, &arguments.path)?,
            content_type: ContentType::Skip,
        };
        let status = stat.run(&call.context)?;
        let target = status.link.map(|link| link.target);
        if matches!(target, Some(LinkTarget::Dangling | LinkTarget::Loop)) {
            return Err(ops::Error::NotFound {
                path: status.path,
                wanted: ops::Wanted::Anything,
                near: Vec::new(),
                denied: false,
            });
        }
        let facts = status.metadata;
        Ok(format!(
            "size: {}\ncreated: {}\nmodified: {}\naccessed: {}\nisDirectory: {}\nisFile: {}\npermissions: {:03o}",
            facts.size,
            date(facts.created.unwrap_or(facts.modified)),
            date(facts.modified),
            date(facts.accessed),
            facts.is_directory(),
            facts.kind == FileKind::File,
            facts.mode & 0o777,
        )
        .into())
    }

    fn json_text(reply: &Content, _replies: ReplyHalves) -> Option<JsonText> {
        Some(reply.text())
    }
}

/// A time as programs in JavaScript write it if their zone is that of Greenwich.
fn date(time: Time) -> String {
    let nanoseconds = i32::try_from(time.nanoseconds).unwrap_or(0);
    let moment = Timestamp::new(time.seconds, nanoseconds).unwrap_or_default();
    let zoned = moment.to_zoned(TimeZone::UTC);
    let day = zoned.strftime("%a %b %d %Y %H:%M:%S");
    format!("{day} GMT+0000 (Coordinated Universal Time)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_greenwich() {
        let time = Time {
            seconds: 1_712_763_000,
            nanoseconds: 500,
        };
        assert_eq!(
            date(time),
            "Wed Apr 10 2024 15:30:00 GMT+0000 (Coordinated Universal Time)"
        );
    }
}
