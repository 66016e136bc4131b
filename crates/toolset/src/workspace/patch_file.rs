//! `patch_file`: a unified diff, applied whole or not at all.

use ops::{Operation, Patch, WriteEffect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Call, RootUse, Tool, ToolEffect};

pub(super) struct PatchFile;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Name of the root, as list_roots tells it.
    root: String,
    /// The file to patch, relative to the root. File names inside the patch are ignored.
    path: String,
    /// A unified diff as `diff -u` or `git diff` writes it: `@@ -line,count +line,count @@` headers, lines that begin with a
    /// space (context), `-` (removed) or `+` (added).
    patch: String,
}

/// What was applied.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The file, relative to the root.
    path: String,
    /// How many hunks were applied: all of them.
    hunks_applied: usize,
    /// Where each hunk went.
    hunks: Vec<HunkReply>,
    /// True where the file is new.
    created: bool,
    /// Size of the file now, in bytes.
    size: u64,
}

/// Where a hunk went.
#[derive(Serialize, JsonSchema)]
struct HunkReply {
    /// The line of the new content where it begins.
    line: u64,
    /// How many lines it was shifted from where its header said.
    offset: i64,
}

impl Tool for PatchFile {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "patch_file";
    const TITLE: &'static str = "Patch a file";
    const DESCRIPTION: &'static str = "Changes parts of a file by a unified diff. All hunks apply or nothing changes. Context and \
        removed lines have to match the file exactly; line numbers in the headers may be off, the nearest matching place is \
        taken. A missing file counts as empty, so a patch of added lines makes it. Read the file first and copy the context \
        lines from it. To replace a whole file use write_file. Returns hunks_applied and where each hunk went. \
        Example: {\"root\":\"workspace\",\"path\":\"hello.txt\",\"patch\":\"@@ -1 +1 @@\\n-Hello World\\n+Hello Agent\\n\"}";
    const EFFECT: ToolEffect = ToolEffect::Write {
        destructive: false,
        idempotent: false,
    };
    const ROOTS: &'static [RootUse] = &[RootUse::WRITE];

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let patch = Patch {
            place: call.place(&arguments.path)?,
            patch: arguments.patch,
        };
        let patched = patch.run(&call.context)?;
        let hunks = patched.hunks.iter();
        let hunks = hunks.map(|hunk| HunkReply {
            line: hunk.line as u64,
            offset: hunk.offset,
        });
        Ok(Reply {
            root: arguments.root,
            path: patched.path,
            hunks_applied: patched.hunks.len(),
            hunks: hunks.collect(),
            created: patched.effect == WriteEffect::Created,
            size: patched.metadata.size,
        })
    }
}
