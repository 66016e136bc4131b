//! `hash_file`: a checksum of a file's content.

use ops::{Hash, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::hash_algorithm::{HashAlgorithm, hash_text};
use crate::tool::{Call, RootUse, Tool, ToolEffect, Weight};

pub(super) struct HashFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: String,
    algorithm: HashAlgorithm,
}

/// A file's hash.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// Which hash.
    algorithm: HashAlgorithm,
    /// The hash in lower-case hexadecimal digits.
    hash: String,
    /// How many bytes were hashed.
    size: u64,
}

impl Tool for HashFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "hash_file";
    const TITLE: &'static str = "Hash a file";
    const DESCRIPTION: &'static str =
        "Computes the hash of a file of any size, to tell whether files are equal or have changed.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::READ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let hash = Hash {
            place: call.place(&arguments.path)?,
            algorithm: arguments.algorithm.into(),
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

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        Some(hash_text(
            &reply.path,
            reply.algorithm,
            &reply.hash,
            reply.size,
        ))
    }
}
