//! `read_media_file`: a file as an image, as sound, or as an embedded resource.

use ops::text::encoding::to_base64;
use ops::{Operation, Oversize, Read, ReadRange, StoredForm, TextPolicy, Totals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::media_type::{by_name, file_uri};
use super::paths::place;
use crate::media::{Media, MediaKind};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct ReadMediaFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Reply {
    content: Vec<Block>,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Block {
    Seen(SeenOrHeard),
    Resource(EmbeddedResource),
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "camelCase")]
struct SeenOrHeard {
    #[serde(rename = "type")]
    kind: SeenKind,
    data: String,
    mime_type: &'static str,
}

#[derive(Serialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum SeenKind {
    Image,
    Audio,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct EmbeddedResource {
    #[serde(rename = "type")]
    kind: ResourceKind,
    resource: Blob,
}

#[derive(Serialize, JsonSchema)]
enum ResourceKind {
    #[serde(rename = "resource")]
    Resource,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(rename_all = "camelCase")]
struct Blob {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
    blob: String,
}

impl Tool for ReadMediaFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "read_media_file";
    const TITLE: &'static str = "Read Media File";
    const DESCRIPTION: &'static str = "Read a file and return it as a base64-encoded content block with its MIME type. Image and audio files are \
        returned as image/audio content; any other file type is returned as an embedded resource. Only works within allowed directories.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::host("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let place = place(call, &arguments.path)?;
        let read = Read {
            place: place.clone(),
            range: ReadRange::Whole,
            max_bytes: None,
            oversize: Oversize::Refuse {
                over: call.context.limits.max_file_size,
            },
            text: TextPolicy::Never,
            totals: Totals::Skip,
            form: StoredForm::AsStored,
        };
        let contents = read.run(&call.context)?;
        let host_path = place.root.host_path(&contents.path);
        let data = to_base64(contents.body.as_bytes());
        Ok(Reply {
            content: vec![block(&host_path, data)],
        })
    }

    fn media(reply: &mut Reply) -> Option<Media> {
        reply.content.first().map(|block| match block {
            Block::Seen(seen) => Media {
                kind: match seen.kind {
                    SeenKind::Image => MediaKind::Image,
                    SeenKind::Audio => MediaKind::Audio,
                },
                mime_type: seen.mime_type,
                data: seen.data.clone(),
                uri: None,
            },
            Block::Resource(EmbeddedResource { resource, .. }) => Media {
                kind: MediaKind::Image,
                mime_type: resource.mime_type.unwrap_or_default(),
                data: resource.blob.clone(),
                uri: Some(resource.uri.clone()),
            },
        })
    }
}

fn block(path: &str, data: String) -> Block {
    let mime_type = by_name(path);
    let kind = match mime_type.split('/').next() {
        Some("image") => SeenKind::Image,
        Some("audio") => SeenKind::Audio,
        _ => {
            return Block::Resource(EmbeddedResource {
                kind: ResourceKind::Resource,
                resource: Blob {
                    uri: file_uri(path),
                    mime_type: Some(mime_type),
                    blob: data,
                },
            });
        }
    };
    Block::Seen(SeenOrHeard {
        kind,
        data,
        mime_type,
    })
}
