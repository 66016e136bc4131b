//! What is remembered of files and directories, and that it is never used for another state of them.
#![expect(
    clippy::disallowed_methods,
    reason = "tests change files behind the operation's back"
)]

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use lease::mapping::MappedFile;

use super::*;
use crate::testing::{Tree, context};
use crate::{
    Case, CompressedFiles, Context, Glob, GlobOrder, Grep, Grepped, IgnoreRules, Kinds, Limits,
    Operation, PathPattern, Pattern, SearchFrom, SearchOutput, Syntax,
};

/// A memory that takes files however new they are.
fn eager() -> Arc<SearchMemory> {
    Arc::new(SearchMemory {
        patience: 0,
        ..SearchMemory::new(Limits::for_tests().search_memory)
    })
}

fn with(memory: &Arc<SearchMemory>) -> Context {
    Context {
        search_memory: Arc::clone(memory),
        ..context()
    }
}

/// Waits until another change gets another time.
fn settle() {
    std::thread::sleep(Duration::from_millis(30));
}

fn grep(tree: &Tree, text: &str) -> Grep {
    Grep {
        place: tree.place("."),
        pattern: Pattern {
            texts: vec![text.to_owned()],
            syntax: Syntax::Regex,
            case: Case::Sensitive,
        },
        filter: None,
        context_lines: 0,
        max_results: 1000,
        timeout: Duration::from_secs(300),
        max_depth: None,
        max_file_size: None,
        ignore_rules: IgnoreRules::Disregard,
        output: SearchOutput::Matches,
        from: SearchFrom::Start,
        compressed: CompressedFiles::AsTheyAre,
    }
}

/// Searches with and without the memory; both have to find the same.
fn search(tree: &Tree, memory: &Arc<SearchMemory>, request: &Grep) -> Grepped {
    let without = request.clone().run(&context()).unwrap();
    let found = request.clone().run(&with(memory)).unwrap();
    assert_eq!(found, without, "in {:?}", tree.host("."));
    found
}

/// Searches until every file could be learned.
fn learn_all(tree: &Tree, memory: &Arc<SearchMemory>) {
    settle();
    for _ in 0..12 {
        search(tree, memory, &grep(tree, "no such text"));
    }
}

fn spared(tree: &Tree, memory: &Arc<SearchMemory>, text: &str) -> u64 {
    let before = memory.usage().hits;
    search(tree, memory, &grep(tree, text));
    memory.usage().hits - before
}

/// Whether files of the temporary directory are remembered at all; says so if they are not, because then little is shown.
fn is_remembering(tree: &Tree) -> bool {
    let located = tree.place(".");
    let (located, _) = located
        .existing(sandbox::Follow::Last, crate::Wanted::Directory)
        .unwrap();
    let is_remembering = located.open_dir().unwrap().stamping_device().is_some();
    if !is_remembering {
        say("left out: nothing is remembered on the temporary directory's file system");
    }
    is_remembering
}

/// Says something whether or not the output of tests is captured.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

fn some_files() -> Tree {
    let tree = Tree::new();
    for number in 0..20 {
        tree.file(
            &format!("d{}/f{number}", number % 3),
            format!("line one of {number}\nneither hay nor straw\n"),
        );
    }
    tree.file("d0/binary", b"\0\x01\x02needle");
    tree
}

#[test]
fn what_cannot_match_is_not_opened_and_counts_as_before() {
    let tree = some_files();
    if !is_remembering(&tree) {
        return;
    }
    let memory = eager();
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 21);
    assert_eq!(spared(&tree, &memory, "absolutely nowhere"), 21);
    let others = spared(&tree, &memory, "one of 7");
    assert!((15..=20).contains(&others), "all but a few: {others}");
    assert_eq!(spared(&tree, &memory, r"\d+"), 0, "nothing can be excluded");
    let found = search(&tree, &memory, &grep(&tree, "absolutely nowhere"));
    assert_eq!((found.files_searched, found.files_skipped), (20, 1));
    let size = Grep {
        max_file_size: Some(10),
        ..grep(&tree, "absolutely nowhere")
    };
    assert_eq!(search(&tree, &memory, &size).files_too_large, 20);
}

#[test]
fn a_part_of_the_files_is_learned_at_a_time() {
    let tree = Tree::new();
    for number in 0..80 {
        tree.file(&format!("f{number}"), "some text");
    }
    if !is_remembering(&tree) {
        return;
    }
    settle();
    let memory = eager();
    search(&tree, &memory, &grep(&tree, "no such text"));
    let first = memory.usage().files;
    assert!((4..=7).contains(&first), "{first}");
    for _ in 0..7 {
        search(&tree, &memory, &grep(&tree, "no such text"));
    }
    assert_eq!(memory.usage().files, 80);
}

#[test]
fn nothing_is_remembered_without_memory_or_too_soon() {
    let tree = some_files();
    let off = Arc::new(SearchMemory::new(0));
    let patient = Arc::new(SearchMemory::new(Limits::for_tests().search_memory));
    learn_all(&tree, &off);
    assert_eq!(off.usage(), SearchMemoryUsage::default());
    learn_all(&tree, &patient);
    assert_eq!(patient.usage().files, 0, "they changed within two seconds");
}

#[test]
fn every_way_to_change_a_file_is_seen() {
    let tree = some_files();
    tree.second_name("d1/f1", "../second");
    let memory = eager();
    let host = |path: &str| tree.host(path);
    let changes: [(&str, &dyn Fn()); 7] = [
        ("rewritten", &|| {
            tree.file("d0/f0", "needle one of 0\n");
        }),
        ("same size and times set back", &|| {
            let path = host("d0/f3");
            let before = std::fs::metadata(&path).unwrap();
            tree.write_at("d0/f3", 0, "needle");
            let times = std::fs::FileTimes::new()
                .set_modified(before.modified().unwrap())
                .set_accessed(SystemTime::now());
            let file = File::options().write(true).open(&path).unwrap();
            file.set_times(times).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().mtime(), before.mtime());
        }),
        ("replaced", &|| {
            tree.file("new", "needle, as long as the one it replaces\n");
            tree.rename("new", "d0/f6");
        }),
        ("swapped", &|| {
            tree.file("new", "needle in another");
            tree.rename("d1/f4", "old");
            tree.rename("new", "d1/f4");
            tree.rename("old", "new");
        }),
        ("through another name", &|| {
            tree.write_at("../second", 0, "needle");
        }),
        ("through a mapping", &|| {
            let mut mapped = MappedFile::open(&host("d2/f2")).unwrap();
            assert_eq!(mapped.load(0), b'l');
            for (at, byte) in b"needle".iter().enumerate() {
                mapped.store(at, *byte);
            }
        }),
        ("below a renamed directory", &|| {
            tree.file("other/f7", "needle");
            tree.rename("d1", "was-d1");
            tree.rename("other", "d1");
        }),
    ];
    let is_remembering = is_remembering(&tree);
    for (how, change) in changes {
        learn_all(&tree, &memory);
        if is_remembering {
            let all = search(&tree, &memory, &grep(&tree, "absolutely nowhere"));
            let known = spared(&tree, &memory, "absolutely nowhere");
            let files = all.files_searched + all.files_skipped;
            assert_eq!(known, files, "all were known before one was {how}");
        }
        let before = search(&tree, &memory, &grep(&tree, "needle")).total_matches;
        settle();
        change();
        let after = search(&tree, &memory, &grep(&tree, "needle")).total_matches;
        assert_eq!(after, before + 1, "{how}");
    }
}

#[test]
fn a_file_that_is_mapped_or_open_for_writing_is_not_remembered() {
    let tree = Tree::with(&[("mapped", "some hay here"), ("open", "some hay here")]);
    let mut mapped = MappedFile::open(&tree.host("mapped")).unwrap();
    let open = File::options().write(true).open(tree.host("open")).unwrap();
    // The page is dirty: what is stored from now on does not show in the file's times.
    mapped.store(0, b'S');
    let memory = eager();
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 0);
    for (at, byte) in b"needle".iter().enumerate() {
        mapped.store(at, *byte);
    }
    let found = search(&tree, &memory, &grep(&tree, "needle"));
    assert_eq!(found.total_matches, 1);
    drop((mapped, open));
    learn_all(&tree, &memory);
    let expected = if is_remembering(&tree) { 2 } else { 0 };
    assert_eq!(memory.usage().files, expected);
    let found = search(&tree, &memory, &grep(&tree, "needle"));
    assert_eq!(found.total_matches, 1);
}

#[test]
fn a_file_that_is_written_for_long_is_never_known_by_half() {
    let tree = Tree::with(&[("log", "begin\n")]);
    let memory = eager();
    let mut log = File::options().append(true).open(tree.host("log")).unwrap();
    for number in 0..5 {
        learn_all(&tree, &memory);
        writeln!(log, "event {number} happened").unwrap();
        let text = format!("event {number} happened");
        let found = search(&tree, &memory, &grep(&tree, &text));
        assert_eq!(found.total_matches, 1);
    }
    assert_eq!(memory.usage().files, 0);
}

/// A log in several pieces, each with a word of its own.
fn log_of_pieces(last: &str) -> String {
    let lines = |word: u64| format!("2026-01-01 something of part{word} happened\n").repeat(16_000);
    let parts: String = (0..4).map(lines).collect();
    parts + last + "\n"
}

#[test]
fn large_files_are_learned_piece_by_piece_and_then_not_opened() {
    let tree = Tree::with(&[("a", "before part2"), ("z", "behind part2")]);
    tree.file("log", log_of_pieces("needle"));
    if !is_remembering(&tree) {
        return;
    }
    settle();
    let memory = eager();
    search(&tree, &memory, &grep(&tree, "absolutely nowhere"));
    assert!(memory.usage().files < 3, "one search learns a few pieces");
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 3);
    assert_eq!(spared(&tree, &memory, "absolutely nowhere"), 3);
    assert_eq!(spared(&tree, &memory, "needle"), 2);
    for (text, max_results) in [
        ("part2", 1000),
        ("part2", 1),
        ("part2", 2),
        ("behind", 1),
        ("part3", 5),
    ] {
        for from in [SearchFrom::Start, SearchFrom::End] {
            for output in [
                SearchOutput::Matches,
                SearchOutput::Files,
                SearchOutput::Count,
            ] {
                let request = Grep {
                    max_results,
                    from,
                    output,
                    ..grep(&tree, text)
                };
                search(&tree, &memory, &request);
            }
        }
    }
}

#[test]
fn pieces_of_two_states_of_a_large_file_are_never_one() {
    let tree = Tree::with(&[("log", log_of_pieces("needle").as_str())]);
    if !is_remembering(&tree) {
        return;
    }
    let memory = eager();
    for round in 0..12 {
        settle();
        let searches = 1 + round % 4;
        for _ in 0..searches {
            search(&tree, &memory, &grep(&tree, "no such text"));
        }
        let new = format!("mark{round}\n");
        let mut text = log_of_pieces("needle");
        // In another piece each time, with the same size.
        let at = (round * 400_000) % (text.len() - 100);
        let at = at + text.get(at..).and_then(|rest| rest.find('\n')).unwrap() + 1;
        text.replace_range(at..at + new.len(), &new);
        tree.file("log", text);
        for text in [new.trim_end(), "needle", "part3"] {
            assert!(search(&tree, &memory, &grep(&tree, text)).total_matches > 0);
        }
    }
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 1);
    assert_eq!(spared(&tree, &memory, "absolutely nowhere"), 1);
    assert_eq!(spared(&tree, &memory, "mark11"), 0);
}

#[test]
fn a_large_file_with_a_line_of_many_pieces_is_never_left_out() {
    let long = "x".repeat(3 << 20) + "needle\n";
    let tree = Tree::with(&[("log", (log_of_pieces("end") + &long).as_str())]);
    let memory = eager();
    learn_all(&tree, &memory);
    assert_eq!(spared(&tree, &memory, "absolutely nowhere"), 0);
    let found = search(&tree, &memory, &grep(&tree, "absolutely nowhere"));
    assert_eq!(found.lines_in_parts, 1);
}

#[test]
fn everything_is_forgotten_when_the_clock_is_set_back() {
    let tree = some_files();
    if !is_remembering(&tree) {
        return;
    }
    let memory = eager();
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 21);
    memory.shift.store(-5_000_000_000, Ordering::Relaxed);
    assert_eq!(spared(&tree, &memory, "absolutely nowhere"), 0);
    assert_eq!(
        memory.usage().files,
        0,
        "by this clock all files are too new"
    );
    memory.shift.store(5_000_000_000, Ordering::Relaxed);
    learn_all(&tree, &memory);
    assert_eq!(memory.usage().files, 21);
}

#[test]
fn a_search_that_sees_the_clock_set_back_learns_nothing_more() {
    let tree = some_files();
    settle();
    let memory = eager();
    let visit = memory.begin(true).unwrap();
    assert!(!memory.moment().is_behind(visit.began));
    memory.shift.store(-5_000_000_000, Ordering::Relaxed);
    assert!(memory.moment().is_behind(visit.began));
    drop(tree);
}

#[test]
fn a_number_that_is_used_again_is_another_file() {
    let tree = some_files();
    let memory = eager();
    learn_all(&tree, &memory);
    let inode = std::fs::metadata(tree.host("d0/f0")).unwrap().ino();
    std::fs::remove_file(tree.host("d0/f0")).unwrap();
    // Most file systems give the number to one of the next files.
    let is_reused = (0..200).any(|number| {
        let path = format!("again/{number}");
        tree.file(&path, "line one of 0\nneedle hay nor straw\n");
        std::fs::metadata(tree.host(&path)).unwrap().ino() == inode
    });
    let found = search(&tree, &memory, &grep(&tree, "needle"));
    let made = tree.names("again").len() as u64;
    assert_eq!(found.total_matches, made, "reused: {is_reused}");
}

#[test]
fn files_become_directories_and_directories_files() {
    let tree = some_files();
    let memory = eager();
    learn_all(&tree, &memory);
    std::fs::remove_file(tree.host("d0/f0")).unwrap();
    tree.file("d0/f0/inside", "needle");
    std::fs::remove_dir_all(tree.host("d1")).unwrap();
    tree.file("d1", "needle");
    let found = search(&tree, &memory, &grep(&tree, "needle"));
    assert_eq!(found.total_matches, 2);
    assert_eq!(found.files_searched, 14);
}

#[test]
fn a_file_that_may_not_be_read_any_more_is_told_as_before() {
    let tree = some_files();
    let memory = eager();
    learn_all(&tree, &memory);
    tree.set_mode("d0/f0", 0o000);
    // Both fail, or both may read everything.
    search(&tree, &memory, &grep(&tree, "absolutely nowhere"));
}

#[test]
fn long_lines_are_told_whatever_is_remembered() {
    let tree = Tree::with(&[("short", "hay\n")]);
    tree.file("long", format!("{}\n", "hay ".repeat(100_000)));
    let memory = eager();
    learn_all(&tree, &memory);
    // With so many places, lines of 400,000 bytes are matched in parts, and the reply says so.
    let costly = grep(&tree, "(?:absolutely[a-c]{0,150}){5}");
    let found = search(&tree, &memory, &costly);
    assert_eq!(found.lines_in_parts, 1);
}

#[test]
fn compressed_files_are_searched_by_what_they_hold() {
    let tree = some_files();
    let memory = eager();
    let packed = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"a needle inside\n").unwrap();
        encoder.finish().unwrap()
    };
    tree.file("packed.gz", packed);
    learn_all(&tree, &memory);
    let inside = Grep {
        compressed: CompressedFiles::Decompressed,
        ..grep(&tree, "needle inside")
    };
    assert_eq!(search(&tree, &memory, &inside).total_matches, 1);
}

#[test]
fn lists_of_directories_are_remembered_and_every_change_of_them_is_seen() {
    let tree = some_files();
    let memory = eager();
    let glob = |pattern: &str| Glob {
        place: tree.place("."),
        pattern: PathPattern::Glob(pattern.to_owned()),
        kinds: Kinds::All,
        max_results: 1000,
        timeout: Duration::from_secs(300),
        max_depth: None,
        ignore_rules: IgnoreRules::Disregard,
        order: GlobOrder::Path,
        exclude: Vec::new(),
    };
    let find = || {
        // But for when directories were last read: that is what is spared.
        let paths = |context: &Context| {
            let found = glob("**").run(context).unwrap().entries.into_iter();
            found.map(|entry| entry.path).collect::<Vec<_>>()
        };
        let found = paths(&with(&memory));
        assert_eq!(found, paths(&context()));
        found.len()
    };
    settle();
    let all = find();
    settle();
    assert_eq!(find(), all);
    assert!(memory.listings.bytes() > 0);
    let steps: [(&dyn Fn(), usize); 5] = [
        (
            &|| {
                let _ = tree.file("d0/new", "");
            },
            all + 1,
        ),
        (
            &|| {
                let _ = tree.rename("d0/new", "d0/newer");
            },
            all + 1,
        ),
        (
            &|| {
                let _ = tree.rename("d0/newer", "d1/newer");
            },
            all + 1,
        ),
        (
            &|| std::fs::remove_file(tree.host("d1/newer")).unwrap(),
            all,
        ),
        (
            &|| {
                let _ = tree.rename("d2", "d1/below");
            },
            all,
        ),
    ];
    for (change, expected) in steps {
        settle();
        assert_eq!(find(), find());
        change();
        assert_eq!(find(), expected);
    }
}

#[test]
fn content_on_a_file_system_in_memory_is_not_remembered() {
    // There a store through a mapping leaves no trace if the page was read before.
    let Ok(base) = tempfile::tempdir_in("/dev/shm") else {
        return say("left out: there is no /dev/shm");
    };
    std::fs::write(base.path().join("file"), "some hay here").unwrap();
    let root = Arc::new(sandbox::Root::open(base.path()).unwrap());
    let memory = eager();
    settle();
    let request = |text: &str| Grep {
        place: crate::Place::new(Arc::clone(&root), ".").unwrap(),
        ..grep(&Tree::new(), text)
    };
    for _ in 0..3 {
        request("needle").run(&with(&memory)).unwrap();
    }
    assert_eq!(memory.usage().files, 0);
    let mut mapped = MappedFile::open(&base.path().join("file")).unwrap();
    assert_eq!(mapped.load(0), b's');
    for (at, byte) in b"needle".iter().enumerate() {
        mapped.store(at, *byte);
    }
    let found = request("needle").run(&with(&memory)).unwrap();
    assert_eq!(found.total_matches, 1);
}

/// How many files are searched in all, and within how much memory; a thirtieth of both unless all is tried.
const MANY_FILES: u64 = 300_000;
const LITTLE_MEMORY: u64 = 16 << 20;

#[test]
fn the_memory_of_a_search_of_many_files_stays_within_its_bound() {
    let part = match std::env::var_os("SANDBOX_EXHAUSTIVE") {
        Some(_) => 1,
        None => 30,
    };
    let (files, limit) = (MANY_FILES / part, LITTLE_MEMORY / part);
    let tree = Tree::new();
    let text: String = (0..120).map(|number| format!("let v{number};\n")).collect();
    for number in 0..files {
        tree.file(&format!("d{}/f{number}", number / 100), &text);
    }
    if !is_remembering(&tree) {
        return;
    }
    settle();
    let memory = Arc::new(SearchMemory {
        patience: 0,
        ..SearchMemory::new(limit)
    });
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(memory.usage().bytes);
                std::thread::sleep(Duration::from_millis(1));
            }
            most
        });
        for _ in 0..9 {
            let request = grep(&tree, "no such text");
            let found = request.run(&with(&memory)).unwrap();
            assert_eq!(found.files_searched, files);
        }
        is_over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    let usage = memory.usage();
    say(&format!(
        "{files} files, {} known, {} kept from being opened, at most {most} of {limit} bytes, lists {}",
        usage.files,
        usage.hits,
        memory.listings.bytes()
    ));
    assert!(most <= limit && usage.bytes <= limit, "{most}");
    assert!(memory.listings.bytes() > 0);
    assert!(usage.files > files / 10, "{}", usage.files);
    assert!(usage.hits > 0);
}

#[test]
fn searches_that_ask_nothing_make_no_known_file_old() {
    let tree = some_files();
    if !is_remembering(&tree) {
        return;
    }
    let memory = eager();
    learn_all(&tree, &memory);
    let before = memory.asking.load(Ordering::Relaxed);
    for _ in 0..40 {
        // No expression without three characters in a row asks, nor does a search for names.
        let _ = grep(&tree, r"\d").run(&with(&memory)).unwrap();
        drop(memory.begin(false));
    }
    assert_eq!(memory.asking.load(Ordering::Relaxed), before);
    search(&tree, &memory, &grep(&tree, "no such text"));
    assert_eq!(memory.asking.load(Ordering::Relaxed), before + 1);
}

#[test]
fn a_search_that_excludes_little_opens_most_files_without_a_look() {
    let memory = eager();
    let visit = memory.begin(true).unwrap();
    let tally = |met, asked, spared| Tally { met, asked, spared };
    assert!(visit.pays(&tally(255, 255, 0)));
    visit.add(tally(256, 256, 31));
    assert!(!visit.pays(&tally(1, 0, 0)));
    assert!(visit.pays(&tally(8, 0, 0)), "one of eight is");
    assert!(visit.pays(&tally(1, 0, 1)));
    assert_eq!(memory.usage().hits, 31);
}
