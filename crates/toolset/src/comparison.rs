//! What `compare` answers in every set that has it.

use std::collections::HashSet;

use ops::{Compared, ComparedDirectories, ComparedFiles, ToldPaths};
use schemars::JsonSchema;
use serde::Serialize;

use crate::text_form::{TextLines, counted, shown};

/// How two directories or two files differ.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Comparison {
    /// The first, as it was given.
    path: String,
    /// The other, as it was given.
    other: String,
    /// True if nothing differs.
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
    /// True if not everything is told.
    truncated: bool,
}

/// A file that differs.
#[derive(Serialize, JsonSchema)]
struct DifferReply {
    /// Its path, relative to both directories.
    path: String,
    /// True if both have the same size.
    same_size: bool,
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

impl Comparison {
    /// What was found at two paths.
    pub(crate) fn new(path: String, other: String, compared: Compared) -> Comparison {
        match compared {
            Compared::Directories(compared) => of_directories(path, other, compared),
            Compared::Files(compared) => of_files(path, other, compared),
        }
    }

    /// It in words.
    pub(crate) fn text(&self) -> String {
        let mut text = TextLines::default();
        let named = |label: String, paths: &[String]| {
            let paths: Vec<_> = paths.iter().map(|path| shown(path)).collect();
            (!paths.is_empty()).then(|| format!("{label}: {}", paths.join(", ")))
        };
        let differ: Vec<String> = self.differ.iter().map(DifferReply::told).collect();
        let lines = [
            named(format!("only in {}", shown(&self.path)), &self.only_in_path),
            named(
                format!("only in {}", shown(&self.other)),
                &self.only_in_other,
            ),
            (!differ.is_empty()).then(|| format!("differ: {}", differ.join(", "))),
            named("not readable".to_owned(), &self.unreadable),
            self.equal.map(|equal| format!("{equal} equal")),
            self.diff.clone(),
            self.files_told(),
        ];
        for line in lines.into_iter().flatten() {
            text.line(line.trim_end_matches('\n'));
        }
        if self.truncated {
            text.note("not everything is told; compare parts of it");
        }
        text.finish()
    }

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

fn empty(path: String, other: String) -> Comparison {
    Comparison {
        path,
        other,
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

fn of_directories(path: String, other: String, compared: ComparedDirectories) -> Comparison {
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
    let same_size: HashSet<String> = same_size.into_iter().collect();
    let differ = differ.paths.into_iter().map(|path| DifferReply {
        same_size: same_size.contains(&path),
        path,
    });
    Comparison {
        identical,
        only_in_path: only_here.paths,
        only_in_other: only_there.paths,
        differ: differ.collect(),
        unreadable: unreadable.paths,
        equal: Some(equal),
        truncated,
        ..empty(path, other)
    }
}

fn of_files(path: String, other: String, compared: ComparedFiles) -> Comparison {
    Comparison {
        identical: compared.equal,
        diff: compared.diff,
        sizes: Some([compared.sizes.0, compared.sizes.1]),
        truncated: compared.truncated,
        ..empty(path, other)
    }
}
