//! Searches through real trees.

use proptest::prelude::*;

use sandbox::OpenFile;

use super::*;
use crate::context::Limits;
use crate::error::{Error, PatternRole};
use crate::pattern::{Case, Syntax};
use crate::testing::{Tree, cancelled, context, with_limits};
use crate::unread::UnreadReason;

fn grep(tree: &Tree, pattern: &str) -> Grep {
    Grep {
        place: tree.place("."),
        pattern: Pattern {
            texts: vec![pattern.to_owned()],
            syntax: Syntax::Regex,
            case: Case::Sensitive,
        },
        filter: None,
        context_lines: 0,
        max_results: 1_000_000,
        timeout: Duration::from_secs(300),
        max_depth: None,
        max_file_size: None,
        ignore_rules: IgnoreRules::Disregard,
        output: SearchOutput::Matches,
        from: SearchFrom::Start,
        compressed: CompressedFiles::AsTheyAre,
    }
}

fn run(request: Grep) -> Grepped {
    request.run(&context()).unwrap()
}

fn listed<'made>(around: impl Iterator<Item = &'made str>) -> Vec<&'made str> {
    around.collect()
}

/// `path:number:line` of every match.
fn flat(found: &Grepped) -> Vec<String> {
    let lines = found.files.iter().flat_map(|file| {
        let line = move |m: &LineMatch| format!("{}:{}:{}", file.path, m.line_number, m.line);
        file.matches.iter().map(line)
    });
    lines.collect()
}

fn paths(found: &Grepped) -> Vec<&str> {
    found.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn matches_have_numbers_and_context() {
    let lines: Vec<String> = (1..=20).map(|n| format!("line {n}")).collect();
    let tree = Tree::with(&[(
        "code.go",
        &lines.join("\n").replace("line 10", "// TODO: fix this"),
    )]);
    let found = run(Grep {
        context_lines: 2,
        ..grep(&tree, "TODO")
    });
    assert_eq!(flat(&found), ["code.go:10:// TODO: fix this"]);
    let only = &found.files[0].matches[0];
    assert_eq!(listed(only.before()), ["line 8", "line 9"]);
    assert_eq!(listed(only.after()), ["line 11", "line 12"]);
    assert_eq!(found.total_matches, 1);
    assert_eq!(found.files_searched, 1);
    assert!(!found.truncated && !found.timed_out);
}

#[test]
fn context_ends_with_the_file_and_may_repeat() {
    let tree = Tree::with(&[("a", "x1\nx2\nend"), ("b", "x")]);
    let found = run(Grep {
        context_lines: 5,
        ..grep(&tree, "x")
    });
    let first = &found.files[0].matches[0];
    assert_eq!(first.before().count(), 0);
    assert_eq!(listed(first.after()), ["x2", "end"]);
    assert_eq!(listed(found.files[0].matches[1].before()), ["x1"]);
    assert_eq!(found.files[1].matches[0].after().count(), 0);
}

#[test]
fn case_and_literals_are_knobs() {
    let tree = Tree::with(&[("f", "Error.\nerror.\nERROR!\n")]);
    let mut request = grep(&tree, "error.");
    assert_eq!(flat(&run(request.clone())), ["f:2:error."]);
    request.pattern.case = Case::Insensitive;
    assert_eq!(run(request.clone()).total_matches, 3);
    request.pattern.syntax = Syntax::Literal;
    assert_eq!(flat(&run(request)), ["f:1:Error.", "f:2:error."]);
}

#[test]
fn filters_choose_by_name_or_by_path() {
    let tree = Tree::with(&[
        ("a.go", "T"),
        ("a.py", "T"),
        ("src/b.go", "T"),
        ("src/deep/c.go", "T"),
        ("docs/d.go", "T"),
    ]);
    let filtered = |filter: &str, place: &str| {
        let filter = Some(filter.to_owned());
        run(Grep {
            filter,
            place: tree.place(place),
            ..grep(&tree, "T")
        })
    };
    assert_eq!(
        paths(&filtered("*.go", ".")),
        ["a.go", "docs/d.go", "src/b.go", "src/deep/c.go"]
    );
    assert_eq!(
        paths(&filtered("src/**/*.go", ".")),
        ["src/b.go", "src/deep/c.go"]
    );
    assert_eq!(paths(&filtered("deep/*", "src")), ["src/deep/c.go"]);
    assert_eq!(paths(&filtered("*.{py,rs}", ".")), ["a.py"]);
}

#[test]
fn the_order_is_that_of_full_paths_as_bytes() {
    let tree = Tree::new();
    let mut expected = Vec::new();
    for number in 0..600 {
        let separator = ["/", ".", "-", "/x/", "0"][number % 5];
        let path = format!("d{}{separator}f{number}", number % 17);
        tree.file(&path, format!("needle {number}\n"));
        expected.push(path);
    }
    expected.sort();
    let found = run(grep(&tree, "needle"));
    assert_eq!(paths(&found), expected);
    for wanted in [0, 1, 5, 100, 599, 600, 601] {
        let first = run(Grep {
            max_results: wanted,
            ..grep(&tree, "needle")
        });
        assert_eq!(paths(&first), expected[..wanted.min(600)]);
        assert_eq!(first.truncated, wanted < 600, "{wanted}");
        assert_eq!(first.total_matches as usize, wanted.min(600));
    }
}

#[test]
fn results_within_a_file_stop_exactly() {
    let tree = Tree::with(&[("a", &"hit\n".repeat(500)), ("b", "hit\n")]);
    let found = run(Grep {
        max_results: 499,
        ..grep(&tree, "hit")
    });
    assert_eq!(found.files[0].matches.last().unwrap().line_number, 499);
    assert!(found.truncated);
    let found = run(Grep {
        max_results: 501,
        ..grep(&tree, "hit")
    });
    assert!(!found.truncated);
}

#[test]
fn files_and_counts_are_told_instead_of_lines() {
    let tree = Tree::with(&[("a", "x\nx\ny\n"), ("b", "y\n"), ("c", "x\n")]);
    let files = run(Grep {
        output: SearchOutput::Files,
        ..grep(&tree, "x")
    });
    assert_eq!(paths(&files), vec!["a", "c"]);
    assert_eq!(files.total_matches, 2);
    assert!(files.files.iter().all(|file| file.matches.is_empty()));
    let counts = run(Grep {
        output: SearchOutput::Count,
        ..grep(&tree, "x")
    });
    assert_eq!(
        counts
            .files
            .iter()
            .map(|file| file.count)
            .collect::<Vec<_>>(),
        [2, 1]
    );
    assert_eq!(counts.total_matches, 3);
    let first = run(Grep {
        output: SearchOutput::Files,
        max_results: 1,
        ..grep(&tree, "x")
    });
    assert_eq!(paths(&first), vec!["a"]);
    assert!(first.truncated);
}

#[test]
fn binaries_and_large_files_are_skipped_and_counted() {
    let tree = Tree::with(&[("text", "needle"), ("empty", "")]);
    tree.file("binary", b"needle\0");
    tree.file("late", [&[b'x'; 9000][..], b"\nneedle \0\n"].concat());
    tree.file("long-binary", vec![0; 3 << 20]);
    tree.file("large", "needle\n".repeat(300_000));
    let found = run(Grep {
        max_file_size: Some(1 << 20),
        ..grep(&tree, "needle")
    });
    assert_eq!(paths(&found), ["late", "text"]);
    assert_eq!(found.files_searched, 3);
    assert_eq!(found.files_skipped, 3);
}

#[test]
fn one_file_is_searched_whatever_the_filter() {
    let tree = Tree::with(&[("dir/a.txt", "needle"), ("dir/b.txt", "needle")]);
    let filter = Some("*.rs".to_owned());
    let found = run(Grep {
        place: tree.place("dir/a.txt"),
        filter,
        ..grep(&tree, "needle")
    });
    assert_eq!(flat(&found), ["dir/a.txt:1:needle"]);
}

#[test]
fn depth_limits_the_walk() {
    let tree = Tree::with(&[("a", "x"), ("d/b", "x"), ("d/e/c", "x")]);
    for (depth, expected) in [(1, vec!["a"]), (2, vec!["a", "d/b"])] {
        let found = run(Grep {
            max_depth: Some(depth),
            ..grep(&tree, "x")
        });
        assert_eq!(paths(&found), expected);
    }
}

#[test]
fn line_ends_do_not_count() {
    let tree = Tree::with(&[
        ("crlf", "one\r\ntwo\r\n\r\nend"),
        ("mark", "\u{feff}first\nsecond"),
    ]);
    let found = run(Grep {
        context_lines: 1,
        ..grep(&tree, "two$|^first")
    });
    assert_eq!(flat(&found), ["crlf:2:two", "mark:1:first"]);
    assert_eq!(listed(found.files[0].matches[0].before()), ["one"]);
    assert_eq!(listed(found.files[0].matches[0].after()), [""]);
    let context = run(Grep {
        context_lines: 1,
        ..grep(&tree, "second")
    });
    assert_eq!(listed(context.files[0].matches[0].before()), ["first"]);
}

#[test]
fn long_lines_are_cut() {
    let tree = Tree::with(&[("f", &format!("{}needle\n", "x".repeat(10_000)))]);
    let found = run(grep(&tree, "needle"));
    let only = &found.files[0].matches[0];
    assert_eq!(only.line.len(), 2000);
    assert!(only.line_truncated);
    assert!(only.line.ends_with("xneedle"), "{}", only.line);
    assert_eq!(only.column, 10_001);
    assert!(!only.line_in_parts);
}

#[test]
fn columns_count_characters_from_one() {
    let tree = Tree::with(&[("f", "\u{feff}needle\näö€ needle needle\n\tneedle\r\n")]);
    let found = run(grep(&tree, "needle"));
    let columns = found.files[0].matches.iter().map(|line| line.column);
    assert_eq!(columns.collect::<Vec<_>>(), [1, 5, 2]);
}

/// The lines of a pattern, with whether each was matched in parts, and how many lines were searched in parts.
fn in_parts(tree: &Tree, pattern: &str) -> (Vec<(i64, bool)>, u64) {
    let found = run(grep(tree, pattern));
    let lines = found.files.iter().flat_map(|file| &file.matches);
    let lines = lines.map(|line| (line.line_number, line.line_in_parts));
    (lines.collect(), found.lines_in_parts)
}

#[test]
fn where_a_long_line_is_cut_is_neither_its_beginning_nor_its_end() {
    let tree = Tree::new();
    // Every byte of the second line may be the last before a cut.
    tree.file("long", format!("y\n{}y\nxx\n", "x".repeat(3 << 20)));
    assert_eq!(in_parts(&tree, "x$"), (vec![(3, false)], 1));
    assert_eq!(in_parts(&tree, "^x"), (vec![(2, true), (3, false)], 1));
    assert_eq!(in_parts(&tree, "^xy"), (vec![], 1));
    assert_eq!(in_parts(&tree, r"x\b"), (vec![(3, false)], 1));
    assert_eq!(in_parts(&tree, "xy$"), (vec![(2, true)], 1));
    assert_eq!(in_parts(&tree, r"\bx+\z"), (vec![(3, false)], 1));
    assert_eq!(in_parts(&tree, "y"), (vec![(1, false), (2, true)], 1));
}

#[test]
fn what_is_far_apart_in_a_long_line_is_found_or_the_line_is_counted() {
    let tree = Tree::new();
    tree.file(
        "long",
        format!("a{}b{}c\n", "x".repeat(1_000_000), "x".repeat(1 << 21)),
    );
    assert_eq!(in_parts(&tree, "a.*b"), (vec![(1, true)], 1));
    // A match without an end of its own is one of the whole line too.
    assert_eq!(in_parts(&tree, "a.*"), (vec![(1, true)], 1));
    assert_eq!(in_parts(&tree, "b.*c"), (vec![], 1));
    let far = run(grep(&tree, "bx"));
    let found = &far.files[0].matches[0];
    assert_eq!(found.column, 1_000_002);
    assert!(found.line.contains("xbx") && found.line_truncated && found.line.len() <= 2000);
    let last = run(grep(&tree, "xc$"));
    assert_eq!(last.files[0].matches[0].column, 1_000_002 + (1 << 21));
    assert!(last.files[0].matches[0].line.ends_with("xc"));
}

#[test]
fn nothing_is_shown_behind_a_line_whose_end_was_not_looked_for() {
    let tree = Tree::new();
    tree.file(
        "long",
        format!("before\nneedle{}\nafter\n", "x".repeat(3 << 20)),
    );
    let found = run(Grep {
        context_lines: 1,
        ..grep(&tree, "needle")
    });
    let only = &found.files[0].matches[0];
    assert_eq!(listed(only.before()), ["before"]);
    assert_eq!(only.after().count(), 0);
}

#[test]
fn names_that_are_not_text_are_shown_reversibly() {
    let tree = Tree::new();
    tree.file_named(b"bad\xff/f", "needle");
    let found = run(grep(&tree, "needle"));
    assert_eq!(paths(&found), ["bad\u{F7FF}/f"]);
    assert!(found.files[0].invalid_utf8);
    let again = run(Grep {
        place: tree.place("bad\u{F7FF}"),
        ..grep(&tree, "needle")
    });
    assert_eq!(again.files, found.files);
}

#[test]
fn links_and_special_files_are_left_alone() {
    let tree = Tree::with(&[("real/f", "needle")]);
    tree.link("link", "real/f");
    tree.link("up", "..");
    tree.link("loop", "loop");
    tree.fifo("pipe");
    let _socket = std::os::unix::net::UnixListener::bind(tree.host("socket")).unwrap();
    let found = run(grep(&tree, "needle"));
    assert_eq!(paths(&found), ["real/f"]);
    let pipe = Grep {
        place: tree.place("pipe"),
        ..grep(&tree, "needle")
    };
    assert!(matches!(pipe.run(&context()), Err(Error::NotAFile { .. })));
}

#[test]
fn faults_of_the_request_are_errors() {
    let tree = Tree::new();
    let invalid = grep(&tree, "[invalid").run(&context()).unwrap_err();
    assert!(matches!(
        invalid,
        Error::InvalidPattern {
            role: PatternRole::Lines,
            ..
        }
    ));
    let filter = Grep {
        filter: Some("[".to_owned()),
        ..grep(&tree, "x")
    };
    assert!(matches!(
        filter.run(&context()),
        Err(Error::InvalidPattern {
            role: PatternRole::SearchedFiles,
            ..
        })
    ));
    let missing = Grep {
        place: tree.place("nowhere"),
        ..grep(&tree, "x")
    };
    assert!(matches!(
        missing.run(&context()),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn a_passed_deadline_gives_what_there_is() {
    let tree = Tree::with(&[("a", "x")]);
    let found = run(Grep {
        timeout: Duration::ZERO,
        ..grep(&tree, "x")
    });
    assert!(found.timed_out && found.files.is_empty());
}

#[test]
fn cancelling_ends_the_call() {
    let tree = Tree::with(&[("a", "x")]);
    let ended = grep(&tree, "x").run(&cancelled());
    assert!(matches!(ended, Err(Error::Cancelled)));
}

/// Text without NULs that a search has to go through: a hole would count as binary.
fn large_file(tree: &Tree, path: &str, bytes: usize) -> String {
    let line = "all work and no play makes a dull file\n";
    let content = line.repeat(bytes / line.len() + 1);
    tree.file(path, &content);
    content
}

#[test]
fn cancelling_works_inside_a_large_file() {
    let tree = Tree::new();
    large_file(&tree, "large", 200 << 20);
    let context = context();
    let ended = std::thread::scope(|scope| {
        let request = grep(&tree, r"(\w+\s+){30}zzz");
        let running = scope.spawn(|| request.run(&context));
        std::thread::sleep(Duration::from_millis(20));
        context.cancel.cancel();
        running.join().unwrap()
    });
    assert!(
        matches!(ended, Err(Error::Cancelled)),
        "{:?}",
        ended.map(|found| found.files.len())
    );
}

#[test]
fn large_files_give_what_small_ones_give() {
    let tree = Tree::new();
    let content = large_file(&tree, "large", 3 << 20);
    let mut lines: Vec<String> = content.lines().map(str::to_owned).collect();
    for number in (0..lines.len()).step_by(997) {
        lines[number] = format!("needle {number}");
    }
    for number in [5, 30_000, 60_000] {
        lines[number] = format!("long {} needle", "y".repeat(300_000));
    }
    tree.file("large", lines.join("\r\n"));
    tree.file("next", "needle\n");
    let found = run(Grep {
        context_lines: 2,
        ..grep(&tree, "needle")
    });
    let expected: Vec<usize> = (0..lines.len())
        .filter(|n| lines[*n].contains("needle"))
        .collect();
    assert_eq!(paths(&found), ["large", "next"]);
    let matches = &found.files[0].matches;
    let numbers: Vec<usize> = matches.iter().map(|m| m.line_number as usize - 1).collect();
    assert_eq!(numbers, expected);
    let shown = |line: &String| line.chars().take(2000).collect::<String>();
    for (found, number) in matches.iter().zip(expected) {
        let around = |range: std::ops::Range<usize>| -> Vec<String> {
            lines[range].iter().map(shown).collect()
        };
        // The match is at the end of its line, and is shown.
        let line = &lines[number];
        assert_eq!(*found.line, line[line.len().saturating_sub(2000)..]);
        assert_eq!(
            listed(found.before()),
            around(number.saturating_sub(2)..number),
            "before {number}"
        );
        let end = (number + 3).min(lines.len());
        assert_eq!(
            listed(found.after()),
            around(number + 1..end),
            "after {number}"
        );
    }
    assert_eq!(found.files_searched, 2);
}

#[test]
fn the_ends_of_pieces_make_no_difference() {
    let piece = file::PIECE as usize;
    for shift in [0, 1, 2, 3] {
        let tree = Tree::new();
        // Lines that end exactly before, at and behind the ends of pieces.
        let mut content = String::new();
        for number in 1..=5 {
            content.push_str(&"x".repeat(number * piece - shift - content.len() - 1));
            content.push_str("\nab\n");
        }
        tree.file("large", &content);
        let found = run(grep(&tree, "^ab$|x$"));
        let numbers: Vec<i64> = found.files[0]
            .matches
            .iter()
            .map(|m| m.line_number)
            .collect();
        assert_eq!(numbers, (1..=10).collect::<Vec<_>>(), "shift {shift}");
    }
}

#[test]
fn a_mark_at_the_beginning_of_a_large_file_does_not_count() {
    let tree = Tree::new();
    tree.file(
        "large",
        "\u{feff}first\n".to_owned() + &"x\n".repeat(1 << 20),
    );
    let found = run(Grep {
        context_lines: 1,
        ..grep(&tree, "^first$")
    });
    assert_eq!(flat(&found), ["large:1:first"]);
    assert_eq!(listed(found.files[0].matches[0].after()), ["x"]);
}

#[test]
fn a_match_far_in_an_over_long_line_is_found() {
    let tree = Tree::new();
    tree.file(
        "long",
        format!(
            "head\n{}needle{}\ntail needle",
            "x".repeat(5 << 20),
            "y".repeat(4 << 20)
        ),
    );
    let found = run(grep(&tree, "needle"));
    let numbers: Vec<i64> = found.files[0]
        .matches
        .iter()
        .map(|m| m.line_number)
        .collect();
    assert_eq!(numbers, [2, 3]);
    assert!(found.files[0].matches[0].line_truncated);
    assert!(run(grep(&tree, "^needle|^x+yy")).files.is_empty());
}

#[test]
fn counts_and_files_of_large_files_come_once() {
    let tree = Tree::new();
    let content = large_file(&tree, "large", 3 << 20);
    let counts = run(Grep {
        output: SearchOutput::Count,
        ..grep(&tree, "dull")
    });
    assert_eq!(counts.files.len(), 1);
    assert_eq!(counts.total_matches as usize, content.lines().count());
    let files = run(Grep {
        output: SearchOutput::Files,
        max_results: 1,
        ..grep(&tree, "dull")
    });
    assert_eq!(files.total_matches, 1);
    assert!(!files.truncated);
}

#[test]
fn a_reply_holds_no_more_text_than_the_limit() {
    let tree = Tree::new();
    for number in 0..50 {
        tree.file(&format!("f{number}"), "needle\n".repeat(10_000));
    }
    let limits = Limits {
        max_file_size: 100_000,
        ..Limits::for_tests()
    };
    let context = with_limits(limits);
    let request = Grep {
        context_lines: usize::MAX,
        max_results: usize::MAX,
        ..grep(&tree, "needle")
    };
    let found = request.run(&context).unwrap();
    assert!(found.truncated && !found.files.is_empty());
    let text: usize = found
        .files
        .iter()
        .flat_map(|file| &file.matches)
        .map(file::weight)
        .sum();
    assert!(text < 300_000, "{text}");
}

#[test]
fn files_that_cannot_be_read_are_counted() {
    let tree = Tree::with(&[("a", "x"), ("closed", "x")]);
    tree.set_mode("closed", 0o000);
    let found = run(grep(&tree, "x"));
    // The superuser may read it all the same.
    assert_eq!(found.files_searched + found.files_skipped, 2);
    assert_eq!(found.unread.count, found.files_skipped);
    assert!(
        found
            .unread
            .first
            .iter()
            .all(|unread| { unread.path == "closed" && unread.reason == UnreadReason::Denied })
    );
}

fn last(tree: &Tree, pattern: &str, max_results: usize) -> Grep {
    Grep {
        from: SearchFrom::End,
        max_results,
        ..grep(tree, pattern)
    }
}

#[test]
fn a_search_from_the_end_gives_the_last_matches_in_order() {
    let tree = Tree::with(&[
        ("a", "x1\nx2\n"),
        ("b/c", "x3\n-\nx4"),
        ("b.t", "x5\nx6\nx7\n"),
    ]);
    let all = flat(&run(grep(&tree, "x")));
    for wanted in 1..=7 {
        let found = run(last(&tree, "x", wanted));
        assert_eq!(flat(&found), all[7 - wanted..], "{wanted}");
        assert_eq!(found.truncated, wanted < 7);
        assert_eq!(found.total_matches, wanted as u64);
    }
    let files = run(Grep {
        output: SearchOutput::Files,
        ..last(&tree, "x", 1)
    });
    assert_eq!(paths(&files), ["b/c"]);
    assert!(files.truncated);
    let around = run(Grep {
        context_lines: 1,
        ..last(&tree, "x3", 1)
    });
    assert_eq!(listed(around.files[0].matches[0].after()), ["-"]);
}

#[test]
fn a_large_file_is_searched_backwards_and_counted_from_its_end() {
    let tree = Tree::new();
    let lines: Vec<String> = (1..=300_000).map(|n| format!("line {n} of many")).collect();
    for end in ["", "\n"] {
        tree.file("log", lines.join("\n") + end);
        let found = run(Grep {
            context_lines: 1,
            ..last(&tree, "[05] of", 3)
        });
        assert_eq!(
            flat(&found),
            [
                "log:-11:line 299990 of many",
                "log:-6:line 299995 of many",
                "log:-1:line 300000 of many",
            ]
        );
        assert_eq!(
            listed(found.files[0].matches[1].before()),
            ["line 299994 of many"]
        );
        // Beyond the pieces that were read at once.
        let far = run(last(&tree, "line (1|17|250000) of", 2));
        assert_eq!(
            flat(&far),
            [
                "log:-299984:line 17 of many",
                "log:-50001:line 250000 of many"
            ]
        );
        assert!(far.truncated);
    }
}

#[test]
fn only_the_end_of_a_large_file_is_read_from_the_end() {
    let tree = Tree::new();
    // Reading 64 GiB takes longer than the search may.
    let size = 64 << 30;
    tree.sparse_file("log", size);
    tree.write_at("log", 0, &"first play\n".repeat(1000));
    let end = "\n".to_owned() + &"last play\n".repeat(1000);
    tree.write_at("log", size - end.len() as u64, &end);
    let found = run(Grep {
        timeout: Duration::from_secs(5),
        ..last(&tree, "play", 3)
    });
    assert_eq!(
        flat(&found),
        ["log:-3:last play", "log:-2:last play", "log:-1:last play"]
    );
    assert!(found.truncated && !found.timed_out);
}

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    ruzstd::encoding::compress_to_vec(text.as_bytes(), level)
}

fn decompressing(request: Grep) -> Grep {
    Grep {
        compressed: CompressedFiles::Decompressed,
        ..request
    }
}

#[test]
fn compressed_files_are_searched_if_asked_for() {
    let tree = Tree::with(&[("a.log", "needle\n"), ("z.gz", "needle, not compressed\n")]);
    tree.file("b.log.gz", gzip("one\nneedle two\nthree\n"));
    tree.file("c.ZST", zstd("\u{feff}needle\r\nlast"));
    tree.file("d.gz", gzip("nothing\n"));
    let binary = gzip("needle\0");
    tree.file("e.gz", &binary);
    tree.file("f.gz", &gzip(&"needle\n".repeat(2000))[..40]);
    assert_eq!(flat(&run(grep(&tree, "^needle")))[0], "a.log:1:needle");
    let found = run(Grep {
        context_lines: 1,
        ..decompressing(grep(&tree, "^needle"))
    });
    let told: Vec<String> = flat(&found)
        .into_iter()
        .filter(|line| !line.starts_with('f'))
        .collect();
    assert_eq!(
        told,
        ["a.log:1:needle", "b.log.gz:2:needle two", "c.ZST:1:needle"]
    );
    assert_eq!(listed(found.files[1].matches[0].before()), ["one"]);
    assert_eq!(listed(found.files[1].matches[0].after()), ["three"]);
    let unread: Vec<&str> = found
        .unread
        .first
        .iter()
        .map(|unread| &*unread.path)
        .collect();
    assert_eq!(unread, ["f.gz", "z.gz"]);
    assert!(
        found
            .unread
            .first
            .iter()
            .all(|unread| unread.reason == UnreadReason::Damaged)
    );
}

/// Lines of all lengths, some of them longer than what is held at once.
fn long_and_short(size: usize) -> String {
    let mut text = String::new();
    let mut number = 0_usize;
    while text.len() < size {
        number += 1;
        let length = match number % 97 {
            0 => 70_000,
            96 => 0,
            n => n,
        };
        text += &format!("{number} {}{}\n", "y".repeat(length), ["", "x"][number % 2]);
    }
    text + &"z".repeat(3 << 20) + "x end\nx last"
}

#[test]
fn compressed_content_gives_what_plain_content_gives() {
    let text = long_and_short(6 << 20);
    let plain = Tree::new();
    plain.file("f.gz", &text);
    let packed = Tree::new();
    packed.file("f.gz", gzip(&text));
    for (pattern, output) in [
        ("x$", SearchOutput::Matches),
        ("^9[0-9]* ", SearchOutput::Matches),
        ("z", SearchOutput::Count),
        ("x", SearchOutput::Files),
        ("x last|^7", SearchOutput::Matches),
    ] {
        for (from, max_results) in [
            (SearchFrom::Start, 1_000_000),
            (SearchFrom::Start, 7),
            (SearchFrom::End, 1_000_000),
            (SearchFrom::End, 7),
        ] {
            let request = |tree: &Tree| Grep {
                from,
                max_results,
                output,
                context_lines: 0,
                ..grep(tree, pattern)
            };
            let found = run(decompressing(request(&packed)));
            let expected = run(Grep {
                from: SearchFrom::Start,
                max_results: 1_000_000,
                ..request(&plain)
            });
            let all = flat(&expected);
            let kept = match from {
                SearchFrom::Start => &all[..all.len().min(max_results)],
                SearchFrom::End => &all[all.len().saturating_sub(max_results)..],
            };
            assert_eq!(flat(&found), kept, "{pattern} {from:?} {max_results}");
            assert_eq!(paths(&found), ["f.gz"]);
            if output == SearchOutput::Count {
                assert_eq!(found.total_matches, expected.total_matches);
            }
        }
    }
}

#[test]
fn a_bomb_is_searched_in_little_memory_and_no_further_than_the_bound() {
    let tree = Tree::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let block = "a".repeat(1 << 20);
    for _ in 0..64 {
        std::io::Write::write_all(&mut encoder, block.as_bytes()).unwrap();
    }
    tree.file("bomb.gz", encoder.finish().unwrap());
    let found = run(decompressing(grep(&tree, "b|^a")));
    assert_eq!(found.total_matches, 1);
    assert_eq!(found.lines_in_parts, 1);
    assert!(found.files[0].matches[0].line_truncated);
}

fn line() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[ab ]{0,6}").unwrap()
}

fn tree_files() -> impl Strategy<Value = Vec<(String, Vec<String>, bool)>> {
    let name = proptest::string::string_regex("[a-c](/[x-z]){0,2}\\.t").unwrap();
    let file = (name, proptest::collection::vec(line(), 0..8), any::<bool>());
    proptest::collection::vec(file, 0..12)
}

/// Line by line, with another engine.
fn naive(files: &[(String, Vec<u8>)], pattern: &str) -> Vec<String> {
    let regex = regex::Regex::new(pattern).unwrap();
    let mut found = Vec::new();
    for (path, content) in files {
        let text = std::str::from_utf8(content).unwrap();
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| regex.is_match(line))
        {
            found.push(format!("{path}:{}:{line}", number + 1));
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_search_equals_a_naive_one(
        files in tree_files(),
        pattern in prop::sample::select(vec!["", "a", "^$", "a$", "^b", "a.*b", r"\bab\b", "[^a]", "a|bb", r"\s$", r"\Aa", r"b\z", "(?i)A B"]),
    ) {
        let tree = Tree::new();
        let mut written = std::collections::BTreeMap::new();
        for (path, lines, crlf) in &files {
            let content = lines.join(if *crlf { "\r\n" } else { "\n" });
            tree.file(path, &content);
            written.insert(path.clone(), content.into_bytes());
        }
        let written: Vec<_> = written.into_iter().collect();
        prop_assert_eq!(flat(&run(grep(&tree, pattern))), naive(&written, pattern));
    }
}

#[test]
fn a_large_file_that_cannot_be_read_is_counted_as_skipped() {
    let tree = Tree::new();
    tree.file("large", "needle\n".repeat(400_000));
    let place = tree.place("large");
    let opened = place
        .existing_file(Wanted::File)
        .unwrap()
        .0
        .open_file()
        .unwrap();
    // A descriptor that can only be written: reads fail, as on a broken disk.
    let flags = rustix::fs::OFlags::WRONLY;
    let only_written =
        rustix::fs::open(tree.host("large"), flags, rustix::fs::Mode::empty()).unwrap();
    let opened = OpenFile::new(only_written.into(), opened.metadata, opened.path);
    let request = grep(&tree, "needle");
    let search = GrepSearch::new(&request, &context(), &context().cancel).unwrap();
    let source = Some(GrepBatch {
        opened: Some(Candidate {
            opened,
            named: Named::Already {
                invalid_utf8: false,
            },
        }),
        ..GrepBatch::default()
    });
    let ended = ordered::run(search, source, GrepProgress::default(), &context().cancel);
    let found = ended.unwrap().0.found;
    assert_eq!(found.files_searched, 0);
    assert_eq!(found.files_skipped, 1);
    assert!(found.files.is_empty());
}

#[test]
fn a_path_that_is_not_text_is_said_to_be_so_when_it_is_the_place() {
    let tree = Tree::new();
    tree.file_named(b"\xff.txt", "needle\n");
    let place = tree.place("\u{F7FF}.txt");
    let found = run(Grep {
        place,
        ..grep(&tree, "needle")
    });
    assert!(found.files[0].invalid_utf8);
}

#[test]
fn long_lines_are_matched_part_by_part_for_expressions_that_cost_much() {
    let tree = Tree::new();
    let filler = "b".repeat(300_000);
    tree.file("end", format!("{filler}a7"))
        .file("inside", format!("short\n{filler}aaa7{filler}\nlast a7\n"))
        .file("none", filler.repeat(3));
    // Thousands of places: lines of more than 10 KB are matched in parts.
    let lines = |text: &str| {
        let found = run(grep(&tree, text));
        let lines = found.files.iter().flat_map(|file| {
            let number = |line: &LineMatch| format!("{}:{}", file.path, line.line_number);
            file.matches.iter().map(number).collect::<Vec<_>>()
        });
        lines.collect::<Vec<_>>()
    };
    assert_eq!(
        lines("(?:(?:a?){950}){2}7"),
        ["end:1", "inside:2", "inside:3"]
    );
    assert_eq!(lines("(?:(?:a?){950}){2}7$"), ["end:1", "inside:3"]);
    assert!(lines("^(?:(?:a?){950}){2}7").is_empty());
    assert_eq!(lines("b(?:(?:x?){950}){2}$"), ["inside:2", "none:1"]);
}
