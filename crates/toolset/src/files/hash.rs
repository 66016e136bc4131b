//! `hash`: a checksum of a file's content.

use ops::{Hash, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::paths::place;
use crate::deployment::ReplyHalves;
use crate::hash_algorithm::{HashAlgorithm, hash_text};
use crate::tool::{Call, PlaceAccess, RootUse, Tool, ToolEffect, Weight};

pub(super) struct HashTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    algorithm: HashAlgorithm,
}

/// A file's hash.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// The file, relative to the root.
    path: String,
    /// Which hash.
    algorithm: HashAlgorithm,
    /// The hash in lower-case hexadecimal digits.
    hash: String,
    /// How many bytes were hashed.
    size: u64,
}

impl Tool for HashTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "hash";
    const TITLE: &'static str = "Hash a file";
    const DESCRIPTION: &'static str = "Computes the hash of a file of any size.";
    const CONTENT: &'static [&'static str] = &[];
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[RootUse::home("path", PlaceAccess::Read)];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let hash = Hash {
            place: place(call, &arguments.path)?,
            algorithm: arguments.algorithm.into(),
        };
        let hashed = hash.run(&call.context)?;
        Ok(Reply {
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
