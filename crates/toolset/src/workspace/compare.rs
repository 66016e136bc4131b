//! `compare`: how two directories or two files differ.

use ops::{Compared, ComparedDirectories, ComparedFiles, Operation, ToldPaths};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deployment::ReplyHalves;
use crate::text_form::{TextLines, counted, shown};
use crate::tool::{Call, PlaceAccess, RootSource, RootUse, Tool, ToolEffect, Weight};

pub(super) struct CompareTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// A name from list_roots.
    root: String,
    path: String,
    /// Another directory or file.
    other: String,
    /// If it is in another root.
    other_root: Option<String>,
}

/// How they differ.
#[derive(Serialize, JsonSchema)]
pub(super) struct Reply {
    /// Name of the root.
    root: String,
    /// The first, as it was given.
    path: String,
    /// Name of the other's root.
    other_root: String,
    /// The other, as it was given.
    other: String,
    /// True where nothing differs.
    identical: bool,
    /// Directories: what only path has, the first thousand. A directory ends with a slash and stands for all in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_in_path: Vec<String>,
    /// Directories: what only other has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only_in_other: Vec<String>,
    /// Directories: what differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    differ: Vec<DifferReply>,
    /// Directories: what could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    /// Directories: how many files and links are equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    equal: Option<u64>,
    /// Files: a unified diff, if both are UTF-8 text of at most 4 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Files: the sizes in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    sizes: Option<[u64; 2]>,
    /// True where not everything is told.
    truncated: bool,
}

/// A file that differs.
#[derive(Serialize, JsonSchema)]
struct DifferReply {
    /// Its path, relative to both directories.
    path: String,
    /// True where both have the same size.
    same_size: bool,
}

impl Tool for CompareTool {
    type Arguments = Arguments;
    type Reply = Reply;

    const NAME: &'static str = "compare";
    const TITLE: &'static str = "Compare";
    const DESCRIPTION: &'static str = "Compares two directories by content (what only one has, what differs, how much is equal) or two \
        files (a unified diff).";
    const EFFECT: ToolEffect = ToolEffect::Read;
    const ROOTS: &'static [RootUse] = &[
        RootUse::READ,
        RootUse {
            root: RootSource::ArgumentOr("other_root", "root"),
            path: "other",
            access: PlaceAccess::Read,
        },
    ];

    fn weight(_arguments: &Arguments) -> Weight {
        Weight::Heavy
    }

    fn run(arguments: Arguments, call: &Call) -> ops::Result<Reply> {
        let compare = ops::Compare {
            place: call.place(&arguments.path)?,
            other: call.destination(&arguments.other)?,
        };
        Ok(match compare.run(&call.context)? {
            Compared::Directories(compared) => of_directories(arguments, compared),
            Compared::Files(compared) => of_files(arguments, compared),
        })
    }

    fn text(reply: &Reply, _replies: ReplyHalves) -> Option<String> {
        let mut text = TextLines::default();
        let named = |label: String, paths: &[String]| {
            let paths: Vec<_> = paths.iter().map(|path| shown(path)).collect();
            (!paths.is_empty()).then(|| format!("{label}: {}", paths.join(", ")))
        };
        let differ: Vec<String> = reply.differ.iter().map(DifferReply::told).collect();
        let lines = [
            named(
                format!("only in {}", shown(&reply.path)),
                &reply.only_in_path,
            ),
            named(
                format!("only in {}", shown(&reply.other)),
                &reply.only_in_other,
            ),
            (!differ.is_empty()).then(|| format!("differ: {}", differ.join(", "))),
            named("not readable".to_owned(), &reply.unreadable),
            reply.equal.map(|equal| format!("{equal} equal")),
            reply.diff.clone(),
            reply.files_told(),
        ];
        for line in lines.into_iter().flatten() {
            text.line(line.trim_end_matches('\n'));
        }
        if reply.truncated {
            text.note("not everything is told; compare parts of it");
        }
        Some(text.finish())
    }
}

impl DifferReply {
    fn told(&self) -> String {
        let path = shown(&self.path);
        if self.same_size {
            format!("{path} (same size)")
        } else {
            path.into_owned()
        }
    }
}

impl Reply {
    /// What is said of two files without a diff.
    fn files_told(&self) -> Option<String> {
        let [one, other] = self.sizes?;
        match (self.identical, &self.diff) {
            (true, _) => Some(format!("identical, {}", counted(one, "byte", "bytes"))),
            (false, Some(_)) => None,
            (false, None) => Some(format!("they differ: {one} and {other} bytes")),
        }
    }
}

fn empty(arguments: Arguments) -> Reply {
    let other_root = arguments.other_root;
    Reply {
        other_root: other_root.unwrap_or_else(|| arguments.root.clone()),
        root: arguments.root,
        path: arguments.path,
        other: arguments.other,
        identical: false,
        only_in_path: Vec::new(),
        only_in_other: Vec::new(),
        differ: Vec::new(),
        unreadable: Vec::new(),
        equal: None,
        diff: None,
        sizes: None,
        truncated: false,
    }
}

fn of_directories(arguments: Arguments, compared: ComparedDirectories) -> Reply {
    let ComparedDirectories {
        only_here,
        only_there,
        differ,
        same_size,
        unreadable,
        equal,
    } = compared;
    let all = [&only_here, &only_there, &differ, &unreadable];
    let cut = |told: &&ToldPaths| told.count > told.paths.len() as u64;
    let (identical, truncated) = (all.iter().all(|told| told.count == 0), all.iter().any(cut));
    let same_size: std::collections::HashSet<String> = same_size.into_iter().collect();
    let differ = differ.paths.into_iter().map(|path| DifferReply {
        same_size: same_size.contains(&path),
        path,
    });
    Reply {
        identical,
        only_in_path: only_here.paths,
        only_in_other: only_there.paths,
        differ: differ.collect(),
        unreadable: unreadable.paths,
        equal: Some(equal),
        truncated,
        ..empty(arguments)
    }
}

fn of_files(arguments: Arguments, compared: ComparedFiles) -> Reply {
    Reply {
        identical: compared.equal,
        diff: compared.diff,
        sizes: Some([compared.sizes.0, compared.sizes.1]),
        truncated: compared.truncated,
        ..empty(arguments)
    }
}
