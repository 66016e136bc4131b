//! What patches do, against tables, against other programs' diffs, and against noise.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

use proptest::prelude::*;

use super::{Applied, HunkPlace, apply, files};
use crate::context::Cancel;
use crate::error::{Error, Result};

fn patched(content: &str, patch: &str) -> Result<Applied> {
    patched_bytes(content.as_bytes(), patch, &Cancel::never())
}

fn patched_bytes(content: &[u8], patch: &str, cancel: &Cancel) -> Result<Applied> {
    match files(patch, cancel)?.as_slice() {
        [one] => apply("file", content, one, cancel),
        several => Err(Error::PatchFiles {
            files: several.len(),
        }),
    }
}

fn text_of(applied: Applied) -> String {
    String::from_utf8(applied.content).unwrap()
}

#[track_caller]
fn check(content: &str, patch: &str, expected: &str) {
    match patched(content, patch) {
        Ok(applied) => assert_eq!(text_of(applied), expected, "{content:?}\n{patch}"),
        Err(error) => panic!("{error:?}\n{content:?}\n{patch}"),
    }
}

/// The line and the reason of a refusal.
#[track_caller]
fn refusal(patch: &str) -> (usize, String) {
    match patched("a\nb\nc\n", patch) {
        Err(Error::PatchMalformed { line, reason }) => (line, reason),
        other => panic!("{other:?}\n{patch}"),
    }
}

type Mismatch = (usize, usize, String, Option<String>);

#[track_caller]
fn mismatch(content: &str, patch: &str) -> Mismatch {
    match patched(content, patch) {
        Err(Error::PatchMismatch {
            hunk,
            line,
            expected,
            found,
            ..
        }) => (hunk, line, expected, found),
        other => panic!("{other:?}\n{patch}"),
    }
}

fn offsets(applied: &Applied) -> Vec<i64> {
    applied.hunks.iter().map(|place| place.offset).collect()
}

const CHANGE_B: &str = "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";

#[test]
fn hunks_change_add_and_remove_lines() {
    check("a\nb\nc\n", CHANGE_B, "a\nB\nc\n");
    check("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+B\n", "a\nB\nc\n");
    check("a\nb\nc\n", "@@ -1,3 +1,2 @@\n a\n-b\n c", "a\nc\n");
    check("a\nb\n", "@@ -2 +2,3 @@\n b\n+x\n+y\n", "a\nb\nx\ny\n");
    check("a\nb\n", "@@ -1 +1,2 @@\n a\n+x\n", "a\nx\nb\n");
    check("a\nb\n", "@@ -1 +1,2 @@\n+x\n a\n", "x\na\nb\n");
    check("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n", "");
    check(
        "a\nb\nc\nd\n",
        "@@ -1 +1 @@\n-a\n+A\n@@ -4 +4 @@\n-d\n+D\n",
        "A\nb\nc\nD\n",
    );
}

#[test]
fn what_surrounds_a_patch_is_skipped() {
    for before in [
        "Subject: x\n---\n f | 2 +-\n\n",
        "diff -u a b\n",
        "```diff\n",
        "Index: f\n====\n",
    ] {
        check("a\nb\nc\n", &format!("{before}{CHANGE_B}"), "a\nB\nc\n");
    }
    let git = "diff --git a/x b/x\nindex 1234567..89abcde 100644\n";
    check("a\nb\nc\n", &format!("{git}{CHANGE_B}"), "a\nB\nc\n");
    for after in ["\n", "\n\n", "-- \n2.47.3\n\n", "```\n"] {
        check("a\nb\nc\n", &format!("{CHANGE_B}{after}"), "a\nB\nc\n");
    }
}

#[test]
fn creation_needs_an_empty_text() {
    let patch = "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+x\n+y\n";
    check("", patch, "x\ny\n");
    check(
        "",
        &format!("diff --git a/f b/f\nnew file mode 100644\nindex 000..123\n{patch}"),
        "x\ny\n",
    );
    check("", "@@ -0,0 +1,2 @@\n+x\n+y\n", "x\ny\n");
    check("", "@@ -1,0 +1 @@\n+x\n\\ No newline at end of file\n", "x");
    let refused = patched("old\n", patch);
    assert!(
        matches!(refused, Err(Error::PatchCreates { .. })),
        "{refused:?}"
    );
}

#[test]
fn final_newlines_come_and_go_as_the_patch_says() {
    const NO: &str = "\\ No newline at end of file\n";
    check(
        "a\nb",
        &format!("@@ -1,2 +1,2 @@\n a\n-b\n{NO}+B\n{NO}"),
        "a\nB",
    );
    check(
        "a\nb",
        &format!("@@ -1,2 +1,2 @@\n a\n-b\n{NO}+b\n"),
        "a\nb\n",
    );
    check(
        "a\nb\n",
        &format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{NO}"),
        "a\nb",
    );
    check(
        "a\nb",
        &format!("@@ -1,2 +1,2 @@\n-a\n+A\n b\n{NO}"),
        "A\nb",
    );
    // Marks that are not so are not believed.
    let patch = format!("@@ -1 +1,2 @@\n a\n+x\n{NO}");
    check("a\nb\n", &patch, "a\nx\nb\n");
    check("a\n", &format!("@@ -1 +1 @@\n-a\n{NO}+b\n{NO}"), "b\n");
    check("a\n", &format!("@@ -1 +1 @@\n-a\n{NO}+b\n"), "b\n");
}

#[test]
fn a_missing_final_newline_the_patch_does_not_know_of_stays_missing() {
    check("a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", "A\nb");
    check("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", "a\nB");
    check("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc");
    check("a\r\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\r\nb\r\nc");
    check(
        "a\r\nb",
        "@@ -1,2 +1,3 @@\n a\r\n b\r\n+c\r\n",
        "a\r\nb\r\nc",
    );
    check("a\nb", "@@ -1,2 +1 @@\n a\n-b\n", "a\n");
}

#[test]
fn line_ends_of_the_text_are_kept() {
    check("a\r\nb\r\nc\r\n", CHANGE_B, "a\r\nB\r\nc\r\n");
    check(
        "a\r\nb\r\nc\r\n",
        &CHANGE_B.replace('\n', "\r\n"),
        "a\r\nB\r\nc\r\n",
    );
    check("a\nb\nc\n", &CHANGE_B.replace('\n', "\r\n"), "a\nB\nc\n");
    check("a\r\nb\nc\n", CHANGE_B, "a\r\nB\nc\n");
    check("a\nb\r\nc\n", CHANGE_B, "a\nB\r\nc\n");
    check("a\r\nb\r\n", "@@\n a\n+x\n", "a\r\nx\r\nb\r\n");
    check("a\r\nb\r\n", "@@\n+x\n a\n", "x\r\na\r\nb\r\n");
    check(
        "a\nb\r\n",
        "@@ -1,2 +1,4 @@\n+x\n a\n b\n+y\n",
        "x\na\nb\r\ny\r\n",
    );
    // Knows both line ends and changes them.
    check(
        "a\r\nb\r\n",
        "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n",
        "a\nb\r\n",
    );
    check("a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n", "a\r\nb\n");
    // It is about a text with other line ends, which has none of them to lose.
    check("a\nb\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\nb\n");
}

#[test]
fn a_byte_order_mark_stays_first() {
    check(
        "\u{feff}a\nb\nc\n",
        "@@ -1,2 +1,2 @@\n-a\n+A\n b\n",
        "\u{feff}A\nb\nc\n",
    );
    check("\u{feff}a\n", "@@ -1 +1,2 @@\n+x\n a\n", "\u{feff}x\na\n");
    check("\u{feff}a\n", "@@ -1 +1 @@\n-\u{feff}a\n+a\n", "a\n");
}

#[test]
fn an_empty_line_is_an_empty_context_line_where_one_is_due() {
    check("a\n\nc\n", "@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n", "a\n\nC\n");
    check(
        "a\r\n\r\nc\r\n",
        "@@ -1,3 +1,3 @@\n a\r\n\r\n-c\r\n+C\r\n",
        "a\r\n\r\nC\r\n",
    );
    // One that is not in the text is no help.
    let patch = "@@ -1,2 +1,2 @@\n a\n-b\n\n+B\n";
    assert_eq!(
        mismatch("a\nb\nc\n", patch),
        (1, 3, String::new(), Some("c".to_owned()))
    );
}

#[test]
fn shifted_hunks_go_to_the_only_place() {
    let patch = "@@ -5,2 +5,2 @@\n x\n-y\n+Y\n";
    let text = |at: &[usize]| -> String {
        (1..=8)
            .map(|i| if at.contains(&i) { "x\ny\n" } else { "-\n-\n" })
            .collect()
    };
    // Pairs of lines: pair n is at lines 2n-1 and 2n.
    for (pair, offset) in [(1, -4), (2, -2), (4, 2), (8, 10)] {
        let applied = patched(&text(&[pair]), patch).unwrap();
        assert_eq!(offsets(&applied), [offset], "{pair:?}");
        assert_eq!(applied.hunks[0].line, 2 * pair - 1);
        assert_eq!(text_of(applied).lines().nth(2 * pair - 1), Some("Y"));
    }
    // Where there are several, only the very line of the header will do.
    assert_eq!(offsets(&patched(&text(&[1, 3, 4]), patch).unwrap()), [0]);
    for pairs in [[2, 4], [1, 2], [4, 8]] {
        match patched(&text(&pairs), patch) {
            Err(Error::PatchNotUnique {
                hunk: 1,
                count: 2,
                lines,
                ..
            }) => {
                assert_eq!(lines, pairs.map(|pair| 2 * pair as u64 - 1));
            }
            other => panic!("{other:?}"),
        }
    }
    // The header's line is far beyond the end.
    let far = patch.replace("5,2", "4000000000,2");
    assert_eq!(offsets(&patched("x\ny\n", &far).unwrap()).len(), 1);
}

#[test]
fn a_hunk_moves_along_with_the_one_before() {
    let text = "0\n0\na\nb\nq\nb\n";
    let patch = "@@ -1 +1,2 @@\n a\n+A\n@@ -2 +3 @@\n-b\n+B\n";
    let applied = patched(text, patch).unwrap();
    let places = [
        HunkPlace { line: 3, offset: 2 },
        HunkPlace { line: 5, offset: 2 },
    ];
    assert_eq!(applied.hunks, places);
    assert_eq!(text_of(applied), "0\n0\na\nA\nB\nq\nb\n");
    // Two places, and no line number hits one.
    let patch = "@@ -3 +3 @@\n-a\n+A\n@@ -4 +4 @@\n-0\n+1\n";
    assert!(matches!(
        patched(text, patch),
        Err(Error::PatchNotUnique { hunk: 2, .. })
    ));
    // Hunks need not be in order, but must not be about the same lines.
    check(
        "a\nb\nc\n",
        "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n",
        "A\nb\nC\n",
    );
    check("a\nb\nc\n", "@@\n-a\n+A\n b\n@@\n b\n-c\n+C\n", "A\nb\nC\n");
    let (line, reason) = refusal("@@\n-a\n-b\n+A\n@@\n-b\n+B\n");
    assert!(
        line == 5 && reason.contains("another hunk"),
        "{line} {reason}"
    );
}

#[test]
fn a_mismatch_names_hunk_line_and_both_texts() {
    let patch = "@@ -1,3 +1,3 @@\n line A\n-line X\n+line Y\n line C\n";
    assert_eq!(
        mismatch("line A\nline B\nline C\n", patch),
        (1, 2, "line X".to_owned(), Some("line B".to_owned()))
    );
    let short = mismatch("line A\n", patch);
    assert_eq!(short, (1, 2, "line X".to_owned(), None));
    assert_eq!(mismatch("", patch), (1, 1, "line A".to_owned(), None));
    let second = "@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-x\n+X\n";
    assert_eq!(
        mismatch("a\nb\nc\n", second),
        (2, 3, "x".to_owned(), Some("c".to_owned()))
    );
    let long = format!("@@ -1 +1 @@\n-{}\n+x\n", "ñ".repeat(5000));
    assert!(mismatch("a\n", &long).2.len() < 400);
}

#[test]
fn malformed_patches_are_refused_with_their_line() {
    let table = [
        ("", 1, "no hunk"),
        ("just talk\nand more\n", 2, "no hunk"),
        ("@@ -0 +1 @@\n a\n", 1, "counted from 1"),
        ("@@ -1,0 +1,0 @@\n", 1, "no hunk"),
        ("@@ -1 +1 @@\n a\n", 1, "changes nothing"),
        ("@@@ -1 -1 +1 @@@\n", 1, "combined diff"),
        ("@@ -2,0 +3 @@\n+x\n", 1, "only adds lines"),
        ("+x\n+y\n", 1, "only adds lines"),
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n+B\n+C\n",
            1,
            "put the counts right",
        ),
        ("@@ -1 +1 @@\\n-a\\n+A\\n", 1, "written out"),
        ("-a\\n+A", 1, "written out"),
        ("<<<<<<< SEARCH\na\n=======\nA\n", 1, "no `=======` and"),
    ];
    for (patch, line, reason) in table {
        let found = refusal(patch);
        assert!(
            found.0 == line && found.1.contains(reason),
            "{found:?}\n{patch}"
        );
    }
}

#[test]
fn what_patches_must_not_do_is_refused_by_name() {
    let hunk = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+A\n";
    for (header, name) in [
        ("rename from f\n", "rename from"),
        ("rename to ../../etc/passwd\n", "rename to"),
        ("copy from f\n", "copy from"),
        ("copy to g\n", "copy to"),
        ("old mode 100644\n", "old mode"),
        ("new mode 100755\n", "new mode"),
        ("deleted file mode 100644\n", "deleting"),
        ("new file mode 120000\n", "symbolic link"),
        ("new file mode 104755\n", "104755"),
        ("new file mode 160000\n", "160000"),
        ("index 1234567..89abcde 120000\n", "symbolic link"),
        ("GIT binary patch\nliteral 3\nKcmZ\n", "GIT binary patch"),
        ("Binary files a/f and b/f differ\n", "Binary files"),
    ] {
        let (line, reason) = refusal(&format!("diff --git a/f b/f\n{header}{hunk}"));
        assert!(line == 2 && reason.contains(name), "{line} {reason}");
    }
    let (line, reason) = refusal("--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n");
    assert!(
        line == 2 && reason.contains("deleting the file"),
        "{reason}"
    );
    let second = hunk.replace("/f", "/g");
    assert!(matches!(
        patched("a\n", &format!("{hunk}{second}")),
        Err(Error::PatchFiles { files: 2 })
    ));
    for (line, name) in [
        ("*** Delete File: f", "Delete File"),
        ("*** Move to: g", "Move to"),
    ] {
        let patch =
            format!("*** Begin Patch\n*** Update File: f\n{line}\n@@\n-a\n+A\n*** End Patch\n");
        let found = refusal(&patch.replace("*** Update File: f\n*** Delete", "*** Delete"));
        assert!(found.1.contains(name), "{found:?}");
    }
    let (_, reason) = refusal(&format!("{hunk}Binary files a/g and b/g differ\n"));
    assert!(reason.contains("Binary files"), "{reason}");
}

#[test]
fn lines_that_look_like_headers_are_lines_inside_a_hunk() {
    let patch = "@@ -1,2 +1,3 @@\n--- a\n+++ b\n+@@ -1 +1 @@\n rename to x\n+diff --git\n";
    let patch = patch.replace("+1,3", "+1,4");
    check(
        "-- a\nrename to x\n",
        &patch,
        "++ b\n@@ -1 +1 @@\nrename to x\ndiff --git\n",
    );
}

#[test]
fn context_that_looks_like_an_end_is_context_where_the_counts_say_so() {
    for line in ["```", "*** x", "Index: x"] {
        let text = format!("text\n{line}\nmore\nend\n");
        let changed = format!("TEXT\n{line}\nMORE\nend\n");
        let body = format!("-text\n+TEXT\n{line}\n-more\n+MORE\n");
        check(&text, &format!("@@ -1,3 +1,3 @@\n{body}"), &changed);
        check(
            &text,
            &format!("```diff\n@@ -1,3 +1,3 @@\n{body}```\n"),
            &changed,
        );
        // Without counts it is read so or refused.
        match patched(&text, &format!("@@\n{body}")) {
            Ok(applied) => assert_eq!(text_of(applied), changed),
            Err(error) => assert!(
                matches!(error, Error::PatchMalformed { line: 5, .. }),
                "{error:?}"
            ),
        }
    }
}

#[test]
fn names_are_told_also_of_malformed_patches() {
    let patch = "--- a/x\n+++ b/x\n@@\n-a\n+b\n*** Add File: y\n+a\n*** Delete File: z\n";
    let parsed = super::read(patch, &Cancel::never());
    assert!(parsed.files.is_err());
    assert_eq!(parsed.names, ["x", "y"]);
}

#[test]
fn cancelling_stops_the_work() {
    let cancel = Cancel::never();
    cancel.cancel();
    assert!(matches!(
        patched_bytes(b"a\nb\nc\n", CHANGE_B, &cancel),
        Err(Error::Cancelled)
    ));
}

/// These take seconds if anything is quadratic, and well under one second otherwise.
#[test]
fn hostile_repetition_costs_linear_time() {
    let lines = 100_000;
    let text = "a\n".repeat(lines);
    // Half of it matches at every place, and then does not.
    let half = lines / 2;
    let patch = format!(
        "@@ -9,{} +9,{} @@\n{}-b\n",
        half + 1,
        half + 1,
        " a\n".repeat(half)
    );
    mismatch(&text, &patch);
    // Each hunk is looked for over the whole text.
    let numbered: String = (0..lines).map(|n| format!("{n}\n")).collect();
    let mut patch = String::new();
    for n in 0..1000 {
        let far = (n + 1) * 2_000_000;
        writeln!(patch, "@@ -{far} +{far} @@\n-{n}\n+x").unwrap();
    }
    let _ = patched(&numbered, &patch);
    // One hunk is the whole text.
    let body = "-a\n+b\n".repeat(lines);
    let applied = patched(&text, &format!("@@ -1,{lines} +1,{lines} @@\n{body}")).unwrap();
    assert_eq!(applied.content, "b\n".repeat(lines).as_bytes());
    // Each of many hunks stands before one long line.
    let long = "x".repeat(5_000_000);
    assert!(patched(&long, &"@@ -0,0 +1 @@\n+y\n".repeat(20_000)).is_err());
    // The text is nothing but line ends.
    mismatch(&"\n".repeat(lines), "@@ -70000,2 +70000,2 @@\n \n-x\n+y\n");
}

// Diffs made by ourselves: the longest common subsequence, cut into hunks.

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Keep,
    Remove,
    Add,
}

fn steps(a: &[&str], b: &[&str]) -> Vec<Step> {
    let mut table = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            table[i][j] = match a[i] == b[j] {
                true => table[i + 1][j + 1] + 1,
                false => table[i + 1][j].max(table[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let step = if i < a.len() && j < b.len() && a[i] == b[j] {
            Step::Keep
        } else if i < a.len() && (j == b.len() || table[i + 1][j] >= table[i][j + 1]) {
            Step::Remove
        } else {
            Step::Add
        };
        i += usize::from(step != Step::Add);
        j += usize::from(step != Step::Remove);
        steps.push(step);
    }
    steps
}

fn own_diff(a: &str, b: &str, context: usize) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (
        a.split_inclusive('\n').collect(),
        b.split_inclusive('\n').collect(),
    );
    let steps = steps(&a, &b);
    let near = |at: usize| {
        let around = at.saturating_sub(context)..(at + context + 1).min(steps.len());
        steps[around].iter().any(|step| *step != Step::Keep)
    };
    let mut output = "--- a\n+++ b\n".to_owned();
    let (mut i, mut j, mut at) = (0, 0, 0);
    while at < steps.len() {
        let (old, new, mut body) = (i, j, String::new());
        while at < steps.len() && near(at) {
            let (sign, line) = match steps[at] {
                Step::Keep => (' ', a[i]),
                Step::Remove => ('-', a[i]),
                Step::Add => ('+', b[j]),
            };
            let end = if line.ends_with('\n') {
                ""
            } else {
                "\n\\ No newline at end of file\n"
            };
            write!(body, "{sign}{line}{end}").unwrap();
            i += usize::from(steps[at] != Step::Add);
            j += usize::from(steps[at] != Step::Remove);
            at += 1;
        }
        if !body.is_empty() {
            let side = |from: usize, to: usize| (from + usize::from(to > from), to - from);
            let ((old, olds), (new, news)) = (side(old, i), side(new, j));
            write!(output, "@@ -{old},{olds} +{new},{news} @@\n{body}").unwrap();
        }
        while at < steps.len() && !near(at) {
            (i, j, at) = (i + 1, j + 1, at + 1);
        }
    }
    output
}

fn line() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "a",
        "b",
        "c",
        "ä€😀",
        "-x",
        "+y",
        " z",
        "\\ q",
        "@@ -1 +1 @@",
        "-- a",
        "++ b",
        "\r",
        "\t",
    ])
}

#[derive(Debug, Clone, Copy)]
enum Ends {
    Lf,
    CrLf,
    Mixed,
}

fn text(ends: Ends) -> impl Strategy<Value = String> {
    let end = move |crlf: bool| match (ends, crlf) {
        (Ends::Lf, _) | (Ends::Mixed, false) => "\n",
        (Ends::CrLf, _) | (Ends::Mixed, true) => "\r\n",
    };
    let lines = prop::collection::vec((line(), any::<bool>()), 0..14);
    (lines, any::<bool>()).prop_map(move |(lines, open)| {
        let mut text: String = lines
            .into_iter()
            .map(|(l, crlf)| format!("{l}{}", end(crlf)))
            .collect();
        if open {
            text.pop();
        }
        text
    })
}

/// Two texts and how many lines of context their diff has.
///
/// Without context, what is inserted has no place.
fn pair() -> impl Strategy<Value = (String, String, usize)> {
    let unix = || text(Ends::Lf).prop_map(|text| text.replace('\r', "r"));
    prop_oneof![
        (unix(), unix(), 1usize..5),
        (text(Ends::CrLf), text(Ends::CrLf), 1usize..5),
        (text(Ends::Mixed), text(Ends::Mixed), 1usize..5),
    ]
}

fn round_trips(a: &str, b: &str, patch: &str) -> std::result::Result<(), TestCaseError> {
    match patched(a, patch) {
        Ok(applied) => {
            prop_assert!(
                applied.hunks.iter().all(|place| place.offset == 0),
                "{}",
                patch
            );
            prop_assert_eq!(text_of(applied), b, "{}", patch);
            Ok(())
        }
        Err(error) => Err(TestCaseError::fail(format!("{error:?}\n{patch}"))),
    }
}

fn temporary(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file.flush().unwrap();
    file
}

/// What another program says the difference is; nothing if the texts are equal.
fn foreign_diff(program: &str, arguments: &[String], a: &str, b: &str) -> Option<String> {
    let (old, new) = (temporary(a), temporary(b));
    let mut command = Command::new(program);
    command.args(arguments).arg(old.path()).arg(new.path());
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C");
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap()).filter(|patch| !patch.is_empty())
}

/// Tells whether a program is there, and says so if it is not.
fn is_installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    if !found {
        let _ = writeln!(std::io::stderr(), "skipped: {program} is not installed");
    }
    found
}

fn foreign_diffs_apply(program: &str, arguments: impl Fn(usize) -> Vec<String>) {
    if !is_installed(program) {
        return;
    }
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(120));
    let outcome = runner.run(&pair(), |(a, b, context)| {
        match foreign_diff(program, &arguments(context), &a, &b) {
            Some(patch) => round_trips(&a, &b, &patch),
            None => Ok(()),
        }
    });
    outcome.unwrap();
}

#[test]
fn gnu_diffs_apply() {
    foreign_diffs_apply("diff", |context| {
        vec!["-a".to_owned(), format!("-U{context}")]
    });
}

#[test]
fn git_diffs_apply() {
    let fixed = [
        "diff",
        "--no-index",
        "--text",
        "--no-color",
        "--no-ext-diff",
    ];
    foreign_diffs_apply("git", |context| {
        fixed
            .iter()
            .map(|a| (*a).to_owned())
            .chain([format!("-U{context}")])
            .collect()
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn own_diffs_apply((a, b, context) in pair()) {
        if a != b {
            round_trips(&a, &b, &own_diff(&a, &b, context))?;
        }
    }

    #[test]
    fn diffs_with_unix_lines_apply_to_windows_texts(
        (a, b, context) in pair(),
    ) {
        let (a, b) = (a.replace('\r', ""), b.replace('\r', ""));
        prop_assume!(a != b && a.contains('\n'));
        let windows = |text: &str| text.replace('\n', "\r\n");
        let patch = own_diff(&a, &b, context);
        prop_assert_eq!(text_of(patched(&windows(&a), &patch).unwrap()), windows(&b));
    }

    #[test]
    fn diffs_apply_to_shifted_texts(
        keep in prop::collection::vec(0u8..4, 1..30), above in 0usize..50, below in 0usize..5,
        context in 1usize..4,
    ) {
        let a: String = (0..keep.len()).map(|n| format!("line {n}\n")).collect();
        let b: String = keep.iter().enumerate().map(|(n, change)| match change {
            0 => String::new(),
            1 => format!("line {n}\nnew {n}\n"),
            _ => format!("line {n}\n"),
        }).collect();
        prop_assume!(a != b);
        let filler = |count| "filler\n".repeat(count);
        let (above_text, below_text) = (filler(above), filler(below));
        let patch = own_diff(&a, &b, context);
        let applied = patched(&format!("{above_text}{a}{below_text}"), &patch).unwrap();
        prop_assert!(offsets(&applied).iter().all(|offset| *offset == above as i64));
        prop_assert_eq!(text_of(applied), format!("{above_text}{b}{below_text}"));
    }

    #[test]
    fn noise_never_panics(content in ".{0,20}", patch in "[-+ @\\\\,0-9a\r\n]{0,60}") {
        let _ = patched(&content, &patch);
    }

    #[test]
    fn spoiled_diffs_fail_cleanly_or_apply(
        (a, b, context) in pair(),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), "[-+ @\\\\,0-9a\r\n]?"), 1..4),
        other in text(Ends::Mixed),
    ) {
        let mut patch: Vec<char> = own_diff(&a, &b, context).chars().collect();
        for (place, with) in spoils {
            let at = place.index(patch.len());
            patch.splice(at..=at, with.chars());
            if patch.is_empty() {
                break;
            }
        }
        let patch: String = patch.into_iter().collect();
        for content in [&a, &b, &other] {
            match patched(content, &patch) {
                Ok(_)
                | Err(
                    Error::PatchMalformed { .. }
                    | Error::PatchMismatch { .. }
                    | Error::PatchNotUnique { .. }
                    | Error::PatchFiles { .. },
                ) => {}
                Err(error) => prop_assert!(false, "{:?}", error),
            }
        }
    }
}

#[test]
fn a_part_without_hunks_is_named_and_refused() {
    const HUNK: &str = "@@ -1 +1 @@\n-a\n+b\n";
    let first = format!("diff --git a/x b/x\n--- a/x\n+++ b/x\n{HUNK}");
    for (part, name) in [
        (
            "diff --git a/y b/y\nnew file mode 100644\nindex 0000000..e69de29\n",
            "y",
        ),
        ("diff --git a/y b/y\n", "y"),
        (
            "diff --git a/my file b/my file\n--- a/my file\n+++ b/my file\n",
            "my file",
        ),
        ("Index: y\n=======\nProperty changes on: y\n", "y"),
        ("*** Add File: y\n", "y"),
        ("*** Update File: y\n", "y"),
    ] {
        let last = first.replace("/x", "/z");
        for patch in [
            format!("{first}{part}"),
            format!("{part}{first}"),
            format!("{first}{part}{last}"),
        ] {
            let refused = files(&patch, &Cancel::never()).unwrap_err();
            let expected = format!("the part for {name} has no hunk");
            let told = match &refused {
                Error::PatchMalformed { line, reason } => {
                    reason.starts_with(&expected)
                        && patch
                            .lines()
                            .nth(line - 1)
                            .is_some_and(|line| line.contains(name))
                }
                _ => false,
            };
            assert!(told, "{refused:?}\n{patch}");
        }
    }
    // A header that is written twice is one part.
    let twice = format!("--- a/x\n+++ b/x\n\n{first}");
    assert_eq!(files(&twice, &Cancel::never()).unwrap().len(), 1);
}
