//! Tests of reading.

use super::*;
use crate::error::{Error, ErrorKind};
use crate::testing::{Tree, cancelled, context, with_limits};
use crate::{Durability, Limits};
use proptest::prelude::*;

fn request(tree: &Tree, path: &str, range: ReadRange) -> Read {
    Read {
        place: tree.place(path),
        range,
        max_bytes: None,
        oversize: Oversize::Refuse { over: 1024 * 1024 },
        text: TextPolicy::Detect,
        totals: Totals::Count,
        form: StoredForm::AsStored,
    }
}

fn read(tree: &Tree, path: &str, range: ReadRange) -> Contents {
    request(tree, path, range).run(&context()).unwrap()
}

fn lines(offset: i64, limit: u64) -> ReadRange {
    ReadRange::Lines {
        offset,
        limit: Some(limit),
    }
}

fn bytes(offset: u64, limit: u64) -> ReadRange {
    ReadRange::Bytes {
        offset,
        limit: Some(limit),
    }
}

fn text(contents: &Contents) -> &str {
    match &contents.body {
        Body::Text(text) => text,
        Body::Bytes(bytes) => panic!("not text: {bytes:?}"),
    }
}

fn numbers(contents: &Contents) -> (Option<u64>, Option<u64>, Option<u64>) {
    (contents.start_line, contents.end_line, contents.lines_total)
}

#[test]
fn whole_texts_have_numbers() {
    let tree = Tree::new();
    tree.file("dir/file", "one\r\ntwo")
        .link("link", "dir/file")
        .file("empty", "");
    let contents = read(&tree, "link", ReadRange::Whole);
    assert_eq!(text(&contents), "one\r\ntwo");
    assert_eq!(contents.path.as_str(), "dir/file");
    assert_eq!(numbers(&contents), (Some(1), Some(2), Some(2)));
    assert!(!contents.binary && !contents.truncated && contents.metadata.size == 8);
    let empty = read(&tree, "empty", ReadRange::Whole);
    assert_eq!(text(&empty), "");
    assert_eq!(numbers(&empty), (None, None, Some(0)));
}

#[test]
fn lines_are_found_from_both_ends() {
    let tree = Tree::new();
    let content: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    tree.file("lines", &content)
        .file("open", "a\nb\nc")
        .file("empty", "");
    let contents = read(&tree, "lines", lines(50, 2));
    assert_eq!(text(&contents), "line 50\nline 51\n");
    assert_eq!(numbers(&contents), (Some(50), Some(51), Some(100)));
    assert!(contents.truncated && !contents.cut);
    for (path, range, expected, first, last, total, more) in [
        ("lines", lines(100, 10), "line 100\n", 100, 100, 100, false),
        ("lines", lines(-2, 1), "line 99\n", 99, 99, 100, true),
        (
            "lines",
            lines(-2, 10),
            "line 99\nline 100\n",
            99,
            100,
            100,
            false,
        ),
        ("open", lines(0, 1), "a\n", 1, 1, 3, true),
        ("open", lines(-1, 9), "c", 3, 3, 3, false),
        ("open", lines(i64::MIN, 1), "a\n", 1, 1, 3, true),
        ("open", lines(2, u64::MAX), "b\nc", 2, 3, 3, false),
        (
            "open",
            ReadRange::Lines {
                offset: 3,
                limit: None,
            },
            "c",
            3,
            3,
            3,
            false,
        ),
    ] {
        let contents = read(&tree, path, range);
        assert_eq!(text(&contents), expected, "{range:?}");
        assert_eq!(
            numbers(&contents),
            (Some(first), Some(last), Some(total)),
            "{range:?}"
        );
        assert_eq!(contents.truncated, more, "{range:?}");
    }
    for (path, range, total) in [
        ("open", lines(4, 10), 3),
        ("open", lines(i64::MAX, u64::MAX), 3),
        ("lines", lines(101, 10), 100),
        ("lines", lines(7, 0), 100),
        ("empty", lines(1, 10), 0),
        ("empty", lines(-1, 10), 0),
    ] {
        let contents = read(&tree, path, range);
        assert_eq!(text(&contents), "", "{range:?}");
        assert_eq!(numbers(&contents), (None, None, Some(total)), "{range:?}");
    }
}

#[test]
fn uncounted_lines_have_no_total() {
    let tree = Tree::new();
    tree.file("file", "a\nb\nc\n");
    let mut request = request(&tree, "file", lines(2, 1));
    request.totals = Totals::Skip;
    assert_eq!(
        numbers(&request.run(&context()).unwrap()),
        (Some(2), Some(2), None)
    );
    let mut request = self::request(&tree, "file", lines(-1, 1));
    request.totals = Totals::Skip;
    let contents = request.run(&context()).unwrap();
    assert_eq!(text(&contents), "c\n");
    assert_eq!(numbers(&contents), (None, None, None));
}

#[test]
fn large_files_are_read_across_blocks() {
    let tree = Tree::new();
    let content: String = (1..=200_000).map(|n| format!("{n:09}\n")).collect();
    tree.file("large", &content);
    let contents = read(&tree, "large", lines(150_000, 2));
    assert_eq!(text(&contents), "000150000\n000150001\n");
    assert_eq!(contents.lines_total, Some(200_000));
    let contents = read(&tree, "large", lines(-100_000, 1));
    assert_eq!(text(&contents), "000100001\n");
    assert_eq!(contents.start_line, Some(100_001));
    let contents = read(&tree, "large", bytes(1_000_000, 10));
    assert_eq!(text(&contents), "000100001\n");
}

#[test]
fn whole_reads_over_the_threshold_are_refused_with_facts() {
    let tree = Tree::new();
    tree.file("large", vec![b'a'; 500]);
    let mut request = request(&tree, "large", ReadRange::Whole);
    request.oversize = Oversize::Refuse { over: 100 };
    let failure = request.run(&context()).unwrap_err();
    assert!(
        matches!(
            failure,
            Error::TooLarge {
                size: 500,
                limit: 100,
                ..
            }
        ),
        "{failure:?}"
    );
}

#[test]
fn replies_are_cut_between_characters() {
    let tree = Tree::new();
    tree.file("file", "aé\nb");
    let cut = |range, max| {
        let mut request = request(&tree, "file", range);
        (request.max_bytes, request.oversize) = (Some(max), Oversize::Cut);
        request.run(&context()).unwrap()
    };
    let contents = cut(ReadRange::Whole, 2);
    assert_eq!(text(&contents), "a");
    assert!(contents.cut);
    assert!(contents.truncated);
    assert_eq!(contents.lines_total, None);
    assert_eq!(text(&cut(ReadRange::Whole, 3)), "aé");
    let contents = cut(lines(1, 5), 2);
    assert_eq!(text(&contents), "a");
    assert!(contents.cut);
    assert_eq!(numbers(&contents), (Some(1), Some(1), Some(2)));
    let contents = cut(ReadRange::Whole, 5);
    assert!(!contents.cut && !contents.truncated);
    let limits = Limits {
        max_file_size: 2,
        durability: Durability::Fast,
        ..Limits::for_tests()
    };
    let mut request = request(&tree, "file", bytes(0, u64::MAX));
    request.max_bytes = Some(u64::MAX);
    let contents = request.run(&with_limits(limits)).unwrap();
    assert!(contents.cut && contents.truncated);
    assert_eq!(text(&contents), "a");
}

#[test]
fn bytes_are_exact() {
    let tree = Tree::new();
    let all: Vec<u8> = (0..=255).collect();
    tree.file("data", &all);
    let contents = read(&tree, "data", bytes(10, 20));
    assert_eq!(contents.body, Body::Bytes((10..30).collect()));
    assert!(contents.binary && contents.truncated && contents.lines_total.is_none());
    assert_eq!(read(&tree, "data", bytes(250, 20)).body.as_bytes().len(), 6);
    for range in [bytes(256, 1), bytes(u64::MAX, u64::MAX), bytes(3, 0)] {
        assert!(
            read(&tree, "data", range).body.as_bytes().is_empty(),
            "{range:?}"
        );
    }
}

#[test]
fn what_is_text_is_the_callers_choice() {
    let tree = Tree::new();
    tree.file("nul", "a\0b")
        .file("latin", b"caf\xe9")
        .file("late", "a".repeat(8192) + "\0");
    let with = |path, policy| {
        let mut request = request(&tree, path, ReadRange::Whole);
        request.text = policy;
        request.run(&context()).unwrap()
    };
    assert!(with("nul", TextPolicy::Detect).binary);
    assert_eq!(text(&with("nul", TextPolicy::Utf8)), "a\0b");
    assert!(with("latin", TextPolicy::Utf8).binary);
    assert!(!with("late", TextPolicy::Detect).binary);
    assert_eq!(with("late", TextPolicy::Never).body.as_bytes().len(), 8193);
    assert!(matches!(
        with("late", TextPolicy::Never).body,
        Body::Bytes(_)
    ));
    // One byte of what is no character is a byte, not half a character.
    assert_eq!(
        read(&tree, "latin", bytes(3, 1)).body,
        Body::Bytes(vec![0xe9])
    );
}

#[test]
fn only_files_are_read() {
    let tree = Tree::new();
    tree.directory("dir")
        .fifo("pipe")
        .file("file", "")
        .link("out", "../outside/secret");
    tree.link("loop", "loop");
    for (path, kind) in [
        ("dir", ErrorKind::IsADirectory),
        ("", ErrorKind::IsADirectory),
        ("pipe", ErrorKind::NotAFile),
        ("none", ErrorKind::NotFound),
        ("file/x", ErrorKind::NotADirectory),
        ("out", ErrorKind::Outside),
        ("loop", ErrorKind::Loop),
    ] {
        let failure = request(&tree, path, ReadRange::Whole)
            .run(&context())
            .unwrap_err();
        assert_eq!(failure.kind(), kind, "{path}");
    }
    let failure = request(&tree, "file", ReadRange::Whole)
        .run(&cancelled())
        .unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Cancelled);
}

#[test]
fn a_small_file_is_read_inline() {
    let tree = Tree::new();
    tree.file("small", "text");
    match request(&tree, "small", ReadRange::Whole).try_inline(&context()) {
        InlineRead::Done(contents) => assert_eq!(text(&contents.unwrap()), "text"),
        // The file system or the kernel cannot tell what is in memory.
        InlineRead::Later(read) => assert_eq!(text(&read.run(&context()).unwrap()), "text"),
    }
}

#[test]
fn what_was_opened_inline_is_not_looked_up_again() {
    let tree = Tree::new();
    tree.file("large", "a".repeat(64 * 1024));
    let begun = request(&tree, "large", ReadRange::Whole).try_inline(&context());
    let InlineRead::Later(read) = begun else {
        panic!("{begun:?}")
    };
    let was_open = read.open.is_some();
    tree.file("other", "b").rename("other", "large");
    let contents = read.run(&context()).unwrap();
    let expected = if was_open { 64 * 1024 } else { 1 };
    assert_eq!(contents.body.as_bytes().len(), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ranges_side_by_side_make_the_text(content in "[aéあ😀\n]{0,30}", step in 1_u64..7) {
        let tree = Tree::new();
        tree.file("file", &content);
        let mut joined = String::new();
        for offset in (0..content.len() as u64).step_by(step as usize) {
            joined.push_str(text(&read(&tree, "file", bytes(offset, step))));
        }
        prop_assert_eq!(joined, content);
    }

    #[test]
    fn line_ranges_agree_with_splitting(content in "[ab\n]{0,40}", offset in -12_i64..12, limit in 0_u64..12) {
        let tree = Tree::new();
        tree.file("file", &content);
        let all: Vec<&str> = content.split_inclusive('\n').collect();
        let first = match offset {
            ..0 => all.len().saturating_sub(offset.unsigned_abs() as usize),
            _ => (offset.unsigned_abs() as usize).saturating_sub(1).min(all.len()),
        };
        let expected: String = all[first..].iter().take(limit as usize).copied().collect();
        let contents = read(&tree, "file", lines(offset, limit));
        prop_assert_eq!(text(&contents), expected);
        prop_assert_eq!(contents.lines_total, Some(all.len() as u64));
    }
}

fn read_as(tree: &Tree, path: &str, range: ReadRange, text: TextPolicy) -> Contents {
    let request = Read {
        text,
        ..request(tree, path, range)
    };
    request.run(&context()).unwrap()
}

#[test]
fn other_encodings_are_text() {
    let tree = Tree::new();
    let utf16: Vec<u8> = "\u{feff}eins\nzw\u{f6}lf\ndrei\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    tree.file("utf16", &utf16);
    tree.file("latin", b"caf\xe9\nna\xefve\n");
    tree.file("bytes", b"\xe9\x01\x02");
    let second = ReadRange::Lines {
        offset: 2,
        limit: Some(1),
    };
    let found = read_as(&tree, "utf16", second, TextPolicy::DetectLegacy);
    assert_eq!(found.body, Body::Text("zw\u{f6}lf\n".to_owned()));
    assert_eq!(found.start_line, Some(2));
    assert_eq!(found.lines_total, Some(3));
    assert_eq!(found.decoded_from, Some("UTF-16LE"));
    assert!(found.truncated);
    let last = ReadRange::Lines {
        offset: -1,
        limit: None,
    };
    let found = read_as(&tree, "utf16", last, TextPolicy::DetectLegacy);
    assert_eq!(found.body, Body::Text("drei\n".to_owned()));
    let found = read_as(&tree, "latin", second, TextPolicy::DetectLegacy);
    assert_eq!(found.body, Body::Text("na\u{ef}ve\n".to_owned()));
    assert_eq!(found.decoded_from, Some("windows-1252"));
    let found = read_as(&tree, "bytes", ReadRange::Whole, TextPolicy::DetectLegacy);
    assert!(found.binary && found.decoded_from.is_none());
    let greek = Encoding::for_label(b"iso-8859-7").unwrap();
    let found = read_as(
        &tree,
        "latin",
        ReadRange::Whole,
        TextPolicy::Encoding(greek),
    );
    assert_eq!(
        found.body,
        Body::Text("caf\u{3b9}\nna\u{3bf}ve\n".to_owned())
    );
    let whole = read_as(&tree, "utf16", ReadRange::Whole, TextPolicy::Detect);
    assert!(whole.binary, "only where it is asked for");
}

#[test]
fn a_read_is_as_large_as_what_it_decodes() {
    let tree = Tree::new();
    let marked = [vec![0xff, 0xfe], b"a\0".repeat(300_000)].concat();
    tree.file("marked", marked)
        .file("plain", "a".repeat(600_000));
    let is_large = |path: &str, text| {
        let read = Read {
            text,
            ..request(&tree, path, bytes(0, 1))
        };
        match read.try_inline(&context()) {
            InlineRead::Later(rest) => rest.is_large(),
            InlineRead::Done(_) => panic!("{path} is no small file"),
        }
    };
    let windows = TextPolicy::Encoding(encoding_rs::WINDOWS_1252);
    assert!(is_large("plain", windows));
    assert!(is_large("marked", TextPolicy::DetectLegacy));
    assert!(!is_large("plain", TextPolicy::DetectLegacy));
    assert!(!is_large("marked", TextPolicy::Detect));
}
