//! Diffs as models write them, and the expected result of each: applied as meant, or refused with enough help to
//! continue. None is applied in another way.

use super::{apply, files};
use crate::context::Cancel;
use crate::error::{Error, Result};

/// The file that they are for.
pub(crate) const BASE: &str = "def load(path):\n    data = read(path)\n    if not data:\n        return None\n    return parse(data)\n\n\n\
def save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return len(text)\n";

/// What most of them mean.
const OLD: &str = "    data = read(path)\n";
const NEW: &str = "    data = read(path, 'rb')\n";

enum Fate {
    /// Applied: the second line is changed.
    Meant,
    /// Applied, with this text replaced by that.
    Changed(&'static str, &'static str),
    /// Refused, and the words have this in them.
    Refused(&'static str),
}
use Fate::{Changed, Meant, Refused};

/// The name of the fault, the patch, and its fate.
const TABLE: &[(&str, &str, Fate)] = &[
    (
        "none",
        "--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n",
        Meant,
    ),
    (
        "counts too large",
        "@@ -1,9 +1,9 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n",
        Meant,
    ),
    (
        "counts too small",
        "@@ -1,1 +1,1 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n",
        Meant,
    ),
    (
        "line number off",
        "@@ -40,3 +40,3 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n",
        Meant,
    ),
    (
        "bare @@",
        "@@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "@@ ... @@",
        "@@ ... @@\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "@@ with text",
        "@@ def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "@@ without numbers of the new side",
        "@@ -1,3 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "no @@",
        "--- a/f.py\n+++ b/f.py\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "no header at all",
        " def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n",
        Meant,
    ),
    (
        "a fence",
        "```diff\n--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n```\n",
        Meant,
    ),
    (
        "a fence and wrong counts",
        "```diff\n@@ -2,4 +2,4 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n```\nDone.\n",
        Meant,
    ),
    (
        "prose before",
        "Here is the patch for the bug:\n\n@@ -1,2 +1,2 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "prose after",
        "@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n\nThis opens the file in binary mode.\n",
        Meant,
    ),
    (
        "a list after",
        "@@\n-    data = read(path)\n+    data = read(path, 'rb')\n\nWhat I did:\n- opened it in binary mode\n+ kept the rest\n",
        Meant,
    ),
    (
        "a list directly after right counts",
        "@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n+ This opens the file in binary mode.\n",
        Meant,
    ),
    (
        "the envelope",
        "*** Begin Patch\n*** Update File: f.py\n@@ def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n*** End Patch\n",
        Meant,
    ),
    (
        "the envelope without @@",
        "*** Begin Patch\n*** Update File: f.py\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n*** End of File\n*** End Patch\n",
        Meant,
    ),
    (
        "SEARCH and REPLACE",
        "f.py\n```python\n<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n```\n",
        Meant,
    ),
    (
        "blanks at the end of context",
        "@@ -1,3 +1,3 @@\n def load(path):  \n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\t\n",
        Meant,
    ),
    (
        "carriage returns everywhere",
        "@@ -1,2 +1,2 @@\r\n def load(path):\r\n-    data = read(path)\r\n+    data = read(path, 'rb')\r\n",
        Meant,
    ),
    (
        "context without its space",
        "@@ -1,3 +1,3 @@\ndef load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n    if not data:\n",
        Meant,
    ),
    (
        "a superfluous mark of no newline",
        "@@ -1,2 +1,2 @@\n def load(path):\n-    data = read(path)\n\\ No newline at end of file\n+    data = read(path, 'rb')\n\\ No newline at end of file\n",
        Meant,
    ),
    (
        "a blank context line that lost its space",
        "@@ -5,4 +5,5 @@\n     return parse(data)\n\n\n+# storing\n def save(path, data):\n",
        Changed("\n\ndef save", "\n\n# storing\ndef save"),
    ),
    (
        "hunks that share context",
        "@@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n     if not data:\n@@\n     if not data:\n-        return None\n+        return []\n     return parse(data)\n",
        Changed(
            "    data = read(path)\n    if not data:\n        return None\n    return parse",
            "    data = read(path, 'rb')\n    if not data:\n        return []\n    return parse",
        ),
    ),
    (
        "hunks out of order",
        "@@ -13 +13 @@\n-    return len(text)\n+    return text\n@@ -5 +5 @@\n-    return parse(data)\n+    return data\n",
        Changed(
            "parse(data)\n\n\ndef save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return len(text)",
            "data\n\n\ndef save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return text",
        ),
    ),
    (
        "the right one of two places, by its line",
        "@@ -11 +11 @@\n-        return None\n+        return 0\n",
        Changed("text:\n        return None", "text:\n        return 0"),
    ),
    (
        "the header said twice for one file",
        "--- a/f.py\n+++ b/f.py\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n--- a/f.py\n+++ b/f.py\n@@ -13 +13 @@\n-    return len(text)\n+    return text\n",
        Changed(
            "    data = read(path)\n    if not data:\n        return None\n    return parse(data)\n\n\ndef save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return len(text)",
            "    data = read(path, 'rb')\n    if not data:\n        return None\n    return parse(data)\n\n\ndef save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return text",
        ),
    ),
    (
        "two places and no line",
        "@@\n-        return None\n+        return 0\n",
        Refused("fits 2 places"),
    ),
    (
        "two places and a wrong line",
        "@@ -7 +7 @@\n-        return None\n+        return 0\n",
        Refused("fits 2 places"),
    ),
    (
        "an insertion without context",
        "@@ -3,0 +4 @@\n+    check(data)\n",
        Refused("only adds lines"),
    ),
    (
        "literal line ends",
        "@@ -2 +2 @@\\n-    data = read(path)\\n+    data = read(path, 'rb')\\n",
        Refused("written out"),
    ),
    (
        "a line that is not there",
        "@@ -2 +2 @@\n-    data = open(path)\n+    data = read(path, 'rb')\n",
        Refused("found \"    data = read(path)\""),
    ),
    (
        "another indentation",
        "@@\n def load(path):\n-  data = read(path)\n+  data = read(path, 'rb')\n",
        Refused("found \"    data = read(path)\""),
    ),
    (
        "an ellipsis for lines",
        "@@ -1,13 +1,13 @@\n def load(path):\n ...\n-    return parse(data)\n+    return data\n",
        Refused("expected \"...\""),
    ),
    (
        "line numbers in the context",
        "@@\n 1\tdef load(path):\n-2\t    data = read(path)\n+2\t    data = read(path, 'rb')\n",
        Refused("does not match"),
    ),
    (
        "a deletion of the file",
        "--- a/f.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-def load(path):\n",
        Refused("deleting the file"),
    ),
    (
        "a deletion in the envelope",
        "*** Begin Patch\n*** Delete File: f.py\n*** End Patch\n",
        Refused("Delete File"),
    ),
    (
        "a move in the envelope",
        "*** Begin Patch\n*** Update File: f.py\n*** Move to: g.py\n@@\n-    data = read(path)\n+    data = read(path, 'rb')\n*** End Patch\n",
        Refused("Move to"),
    ),
    (
        "additions behind the counts",
        "@@ -1,2 +1,2 @@\n def load(path):\n-    data = read(path)\n+    data = read(path, 'rb')\n+    check(data)\n",
        Refused("put the counts right"),
    ),
    (
        "a file that is made twice",
        "--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+x = 1\n",
        Refused("makes"),
    ),
    (
        "only talk",
        "I changed line 2 to open the file in binary mode.\n",
        Refused("no hunk"),
    ),
    (
        "no change",
        "@@ -1,2 +1,2 @@\n def load(path):\n     data = read(path)\n",
        Refused("changes nothing"),
    ),
    (
        "two parts of git without names of files",
        "diff --git a/f.py b/f.py\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\ndiff --git a/g.py b/g.py\n@@ -13 +13 @@\n-    return len(text)\n+    return text\n",
        Refused("for 2 files"),
    ),
    (
        "two parts of svn without names of files",
        "Index: f.py\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\nIndex: g.py\n@@ -13 +13 @@\n-    return len(text)\n+    return text\n",
        Refused("for 2 files"),
    ),
    (
        "a second name without a dot",
        "f.py\n<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n\nMakefile\n<<<<<<< SEARCH\n    return len(text)\n=======\n    return text\n>>>>>>> REPLACE\n",
        Refused("for 2 files"),
    ),
    (
        "a second name two lines up",
        "f.py\n<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n\ng.py\n\n```python\n<<<<<<< SEARCH\n    return len(text)\n=======\n    return text\n>>>>>>> REPLACE\n```\n",
        Refused("for 2 files"),
    ),
    (
        "a second name in prose",
        "f.py\n<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\nNow for g.py:\n<<<<<<< SEARCH\n    return len(text)\n=======\n    return text\n>>>>>>> REPLACE\n",
        Refused("may name another file"),
    ),
    (
        "the same name in quotes and in Markdown",
        "**`f.py`**:\n<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n",
        Meant,
    ),
    (
        "a fence in a hunk, and changes behind it",
        "@@\n-    data = read(path)\n+    data = read(path, 'rb')\n```\n-    return len(text)\n+    return text\n",
        Refused("belongs to no hunk"),
    ),
    (
        "a fence in a hunk that is not in the file",
        "@@ -2,3 +2,3 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n```\n-    if not data:\n+    if data:\n",
        Refused("expected \"```\""),
    ),
    (
        "counts that a fence and prose would fill",
        "```diff\n@@ -2,3 +2,3 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n```\nDone.\n",
        Meant,
    ),
    (
        "stars behind a hunk, and changes behind them",
        "@@ -2,3 +2,3 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n*** x\n-    return parse(data)\n+    return data\n",
        Refused("expected \"*** x\""),
    ),
    (
        "changes before the first mark",
        "-def load(path):\n+def load(path, mode):\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Refused("belongs to no hunk"),
    ),
    (
        "two dividers",
        "<<<<<<< SEARCH\n    data = read(path)\n=======\n    if not data:\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n",
        Refused("line 5: the SEARCH block has a second line"),
    ),
    (
        "two ends of a block",
        "<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = read(path, 'rb')\n>>>>>>> REPLACE\n>>>>>>> REPLACE\n",
        Refused("has no SEARCH block"),
    ),
    (
        "a block inside a block",
        "<<<<<<< SEARCH\n    data = read(path)\n=======\n    data = 1\n<<<<<<< SEARCH\n>>>>>>> REPLACE\n",
        Refused("no `=======` and"),
    ),
    (
        "a name in wrong quotes",
        "--- \"a/f.py\"\n+++ \"b/f.py\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Refused("in quotes"),
    ),
    (
        "a name in quotes",
        "--- \"a/f\\056py\"\n+++ \"b/f\\056py\"\n@@ -2 +2 @@\n-    data = read(path)\n+    data = read(path, 'rb')\n",
        Meant,
    ),
    (
        "a removed line that looks like a list, without marks",
        " def load(path):\n-     data = read(path)\n- x\n-    if not data:\n+    if data:\n",
        Refused("does not match"),
    ),
];

/// How many of them are applied as meant, and how many refused; none is applied in another way.
const APPLIED: usize = 31;
const REFUSED: usize = 29;

/// The patches, and whether each is applied.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, bool)> {
    TABLE
        .iter()
        .map(|(_, patch, fate)| (*patch, !matches!(fate, Refused(_))))
}

fn patched(patch: &str) -> Result<String> {
    let cancel = Cancel::never();
    let files = files(patch, &cancel)?;
    if files.len() > 1 {
        return Err(Error::PatchFiles { files: files.len() });
    }
    let applied = apply("f.py", BASE.as_bytes(), &files[0], &cancel)?;
    Ok(String::from_utf8(applied.content).unwrap())
}

fn words(error: &Error) -> String {
    match error {
        Error::PatchMismatch {
            expected, found, ..
        } => {
            format!(
                "{error}: expected {expected:?}, found {:?}",
                found.as_deref().unwrap_or_default()
            )
        }
        other => other.to_string(),
    }
}

#[test]
fn faulty_diffs_are_applied_as_meant_or_refused() {
    let mut applied = 0;
    for (name, patch, fate) in TABLE {
        match (patched(patch), fate) {
            (Ok(text), Meant) => assert_eq!(text, BASE.replace(OLD, NEW), "{name}"),
            (Ok(text), Changed(old, new)) => {
                assert_eq!(BASE.matches(old).count(), 1, "{name}");
                assert_eq!(text, BASE.replace(old, new), "{name}");
            }
            (Err(error), Refused(reason)) => {
                assert!(words(&error).contains(reason), "{name}: {}", words(&error));
                continue;
            }
            (Ok(text), Refused(_)) => panic!("{name} was applied:\n{text}"),
            (Err(error), _) => panic!("{name} was refused: {error:?}"),
        }
        applied += 1;
    }
    let refused = TABLE.len() - applied;
    assert_eq!(applied, APPLIED);
    assert_eq!(refused, REFUSED);
    let row = format!("| diffs | {} | {applied} | {refused} | 0 |", TABLE.len());
    let results = include_str!("../../../../../bench/AGENTS.md");
    assert!(results.contains(&row), "bench/AGENTS.md has to have {row}");
}

#[test]
fn a_removed_line_that_looks_like_a_header_is_a_line() {
    let text = "-- select\nSELECT 1;\n-- end\n";
    let patch =
        "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n--- select\n+++ choose\n SELECT 1;\n -- end\n";
    let cancel = Cancel::never();
    for patch in [
        patch.to_owned(),
        patch.replace("-1,3 +1,3", "-1,2 +1,2"),
        patch.replace(" -1,3 +1,3 @@", ""),
    ] {
        let files = files(&patch, &cancel).unwrap();
        let applied = apply("q.sql", text.as_bytes(), &files[0], &cancel).unwrap();
        assert_eq!(
            applied.content, b"++ choose\nSELECT 1;\n-- end\n",
            "{patch}"
        );
    }
}

#[test]
fn several_files_are_told_apart() {
    let cancel = Cancel::never();
    let patch = "diff --git a/x.py b/x.py\nindex 12..34 100644\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n\
        diff --git a/d/y.py b/d/y.py\n--- a/d/y.py\t2026-01-01\n+++ b/d/y.py\t2026-01-01\n@@ -1,4 +1,4 @@\n-a\n+b\n\
        *** Add File: z\n+one\n+two\n";
    let files = files(patch, &cancel).unwrap();
    let names: Vec<_> = files
        .iter()
        .map(|file| file.name.as_deref().unwrap())
        .collect();
    assert_eq!(names, ["x.py", "d/y.py", "z"]);
    for file in &files[..2] {
        assert_eq!(apply("f", b"a\n", file, &cancel).unwrap().content, b"b\n");
    }
    assert_eq!(
        apply("f", b"", &files[2], &cancel).unwrap().content,
        b"one\ntwo\n"
    );
}
