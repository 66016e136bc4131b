//! Arguments that several tools of the set share, and their conversion for the bridge.

use guide::{ContentShape, IncomingFile, TextEncoding};
use ops::text::encoding::from_base64;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::Failure;

/// What an agent knows of its file.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenMetadata {
    /// Seconds since the epoch.
    #[schemars(range(min = 0))]
    mtime: Option<f64>,
    /// The file's encoding, such as latin-1.
    encoding: Option<String>,
    /// In bytes; compared with the content.
    size: Option<u64>,
}

/// A file's content as it comes.
pub(super) struct GivenFile<'call> {
    pub(super) path: &'call str,
    pub(super) content: &'call str,
    pub(super) binary: bool,
    pub(super) encoding: Option<&'call str>,
    pub(super) metadata: Option<&'call GivenMetadata>,
}

impl GivenFile<'_> {
    /// Decodes the content and names the encoding.
    pub(super) fn handover(&self) -> Result<IncomingFile, Failure> {
        let metadata = self.metadata.cloned().unwrap_or_default();
        let named = self.encoding.or(metadata.encoding.as_deref());
        Ok(IncomingFile {
            path: self.path.to_owned(),
            content: decoded(self.path, self.content, self.binary)?,
            shape: shape(self.binary),
            encoding: encoding(named)?.unwrap_or(TextEncoding::UTF_8),
            mtime: metadata.mtime,
            size: metadata.size,
        })
    }
}

/// Text or bytes.
pub(super) fn shape(binary: bool) -> ContentShape {
    if binary {
        ContentShape::Bytes
    } else {
        ContentShape::Text
    }
}

/// The encoding of a name.
pub(super) fn encoding(name: Option<&str>) -> Result<Option<TextEncoding>, Failure> {
    Ok(name.map(TextEncoding::named).transpose()?)
}

fn decoded(path: &str, content: &str, binary: bool) -> Result<Vec<u8>, Failure> {
    if !binary {
        return Ok(content.as_bytes().to_vec());
    }
    from_base64(content).map_err(|error| {
        let reason = match error {
            ops::Error::InvalidEncoding { reason } => reason,
            other => other.to_string(),
        };
        let path = path.to_owned();
        guide::Error::BadContent { path, reason }.into()
    })
}
