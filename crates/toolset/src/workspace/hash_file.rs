//! `hash_file`: the hash of a file's content.

use ops::Operation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, Effect, RootUse, Tool};

pub(super) struct HashFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The root's name, as list_roots tells it.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// The hash to compute.
    algorithm: Algorithm,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
}

/// A file's hash.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The root's name.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// The hash that was computed.
    algorithm: Algorithm,
    /// The hash in lower-case hexadecimal digits.
    hash: String,
    /// The file's size in bytes.
    size: u64,
}

impl Tool for HashFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "hash_file";
    const TITLE: &'static str = "Hash file";
    const DESCRIPTION: &'static str = "Computes the md5, sha1 or sha256 of a file's content, of any size. \
        Use it to tell whether two files are equal or whether a file has changed, without reading it; \
        for size and times alone use stat_file. Directories cannot be hashed. \
        Returns root, path, algorithm, hash (hexadecimal) and size in bytes. \
        Example: {\"root\":\"workspace\",\"path\":\"data/input.json\",\"algorithm\":\"sha256\"}";
    const EFFECT: Effect = Effect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let algorithm = match arguments.algorithm {
            Algorithm::Md5 => ops::Algorithm::Md5,
            Algorithm::Sha1 => ops::Algorithm::Sha1,
            Algorithm::Sha256 => ops::Algorithm::Sha256,
        };
        let hash = ops::Hash {
            place: call.place(&arguments.path)?,
            algorithm,
        };
        let hashed = hash.run(&call.context)?;
        Ok(Reply {
            root: arguments.root,
            path: hashed.path,
            algorithm: arguments.algorithm,
            hash: hashed.hex,
            size: hashed.size,
        })
    }
}
