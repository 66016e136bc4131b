//! The hashes that tools compute, by their names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text_form::{TextLines, shown};

/// A hash by its name.
#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HashAlgorithm {
    Md5,
    Sha1,
    #[default]
    Sha256,
}

impl HashAlgorithm {
    /// Its name in text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            HashAlgorithm::Md5 => "md5",
            HashAlgorithm::Sha1 => "sha1",
            HashAlgorithm::Sha256 => "sha256",
        }
    }
}

/// A file's hash in text.
pub(crate) fn hash_text(path: &str, algorithm: HashAlgorithm, hash: &str, size: u64) -> String {
    let mut lines = TextLines::default();
    lines
        .fact("path", Some(shown(path)))
        .fact(algorithm.name(), Some(hash))
        .fact("size", Some(size));
    lines.finish()
}

impl From<HashAlgorithm> for ops::Algorithm {
    fn from(algorithm: HashAlgorithm) -> ops::Algorithm {
        match algorithm {
            HashAlgorithm::Md5 => ops::Algorithm::Md5,
            HashAlgorithm::Sha1 => ops::Algorithm::Sha1,
            HashAlgorithm::Sha256 => ops::Algorithm::Sha256,
        }
    }
}
