use super::*;
use crate::agent::{Agent, AskResult, ContentSource, Lack, Resume, StepOutcome, Told};
use crate::cache::StoreStatus;
use crate::encoding::TextEncoding;
use crate::error::Result;
use crate::file::ContentShape;
use crate::listing::{Accepts, EntryKind, PathInfo};
use crate::upload::Chunk;
use sandbox::Root;

/// Answers what it was told to, and remembers what it was asked. Bytes are written in hexadecimal, entries as names.
#[derive(Default)]
struct Script {
    answers: Vec<AskResult>,
    asked: Vec<AgentQuestion>,
}

impl Script {
    fn answering(answers: &[&str]) -> Script {
        let answers = answers.iter().rev();
        Script {
            answers: answers.map(|text| answer(text)).collect(),
            asked: Vec::new(),
        }
    }
}

impl Agent for Script {
    fn ask(&mut self, question: &AgentQuestion) -> AskResult {
        self.asked.push(question.clone());
        self.answers.pop().unwrap_or(AskResult::Waiting)
    }

    fn bytes(&self, answer: &str) -> Result<Vec<u8>, String> {
        let pairs = answer.split(' ');
        pairs
            .map(|pair| u8::from_str_radix(pair, 16).map_err(|error| error.to_string()))
            .collect()
    }

    fn entries(&self, answer: &str) -> Result<Vec<PathInfo>, String> {
        match answer {
            "" => Err("nothing".to_owned()),
            names => Ok(names.split(' ').map(entry).collect()),
        }
    }
}

/// A directory, if the name ends in a slash.
fn entry(name: &str) -> PathInfo {
    let directory = name.strip_suffix('/');
    PathInfo {
        name: directory.unwrap_or(name).into(),
        kind: match directory {
            Some(_) => EntryKind::Directory,
            None => EntryKind::File,
        },
        size: None,
        mtime: None,
        children: None,
    }
}

fn answer(text: &str) -> AskResult {
    let path = || "docs/a".to_owned();
    if text == NOT_TEXT {
        return AskResult::NotText;
    }
    if text == NOT_FOUND {
        return AskResult::Failed(Error::NotFound {
            path: path(),
            above: None,
        });
    }
    AskResult::Answered(Told {
        content: text.to_owned(),
        ..Told::default()
    })
}

/// Answers that stand for themselves.
const NOT_TEXT: &str = "(not text)";
const NOT_FOUND: &str = "(not found)";

fn bridge() -> ClientBridge {
    shared_bridge().of(CacheOwner::alone("one"))
}

fn shared_bridge() -> FilesystemBridge {
    let directory = std::env::temp_dir();
    let root = Root::open(&directory).unwrap();
    let validator = PathValidator::new(root, &directory, &["docs"]).unwrap();
    let limits = BridgeLimits {
        cache_size: 10_000,
        cache_ttl: Some(Duration::from_secs(600)),
        recheck: Some(Duration::from_secs(60)),
    };
    FilesystemBridge::new(validator, limits)
}

fn text(path: &str) -> FileRequest {
    FileRequest {
        path: path.to_owned(),
        shape: ContentShape::Text,
        encoding: None,
        mtime: None,
        freshness: Freshness::Cached,
    }
}

fn handover(path: &str, content: &str) -> IncomingFile {
    IncomingFile {
        path: path.to_owned(),
        content: content.as_bytes().to_vec(),
        shape: ContentShape::Text,
        encoding: TextEncoding::UTF_8,
        mtime: None,
        size: None,
    }
}

fn directory(path: &str, recursive: bool) -> DirectoryRequest<'static> {
    DirectoryRequest {
        path: path.to_owned(),
        recursive,
        filter: None,
        freshness: Freshness::Cached,
    }
}

fn resumed(looked_at: Now, lack: Option<Lack>) -> Resume {
    Resume {
        asked_at: looked_at.wall,
        looked_at: looked_at.wall,
        shape: ContentShape::Text,
        lack,
        marker: 0,
    }
}

#[track_caller]
fn done<T: std::fmt::Debug>(outcome: Result<StepOutcome<T>>) -> T {
    match outcome {
        Ok(StepOutcome::Done(done)) => done,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_is_cached_and_asked_for_once() {
    let (bridge, now) = (bridge(), Now::read());
    let mut agent = Script::answering(&["# Title"]);
    let read = done(bridge.read_file(&text("docs/a.md"), None, &mut agent, now));
    assert_eq!(read.content, FileContent::Text("# Title".to_owned()));
    assert_eq!(read.source, ContentSource::Answer);
    let again = done(bridge.read_file(&text("docs/./a.md"), None, &mut agent, now));
    assert_eq!(again.source, ContentSource::Cache);
    assert_eq!(agent.asked.len(), 1);
    let counters = bridge.cache_usage(now.steady).counters;
    assert_eq!(counters.hits, 1);
    assert_eq!(counters.misses, 1);
}

#[test]
fn a_path_is_judged_before_anyone_is_asked() {
    let (bridge, now) = (bridge(), Now::read());
    let mut agent = Script::answering(&["root:x:0"]);
    let refused = bridge.read_file(&text("/etc/passwd"), None, &mut agent, now);
    assert!(matches!(refused, Err(Error::Violation { .. })));
    assert!(agent.asked.is_empty());
}

#[test]
fn failures_are_never_cached() {
    let (bridge, now) = (bridge(), Now::read());
    let read = |answer: &str| {
        let mut agent = Script::answering(&[answer]);
        bridge
            .read_file(&text("docs/a"), None, &mut agent, now)
            .unwrap_err()
    };
    assert!(matches!(
        read(NOT_FOUND),
        Error::NotFound { above: Some(_), .. }
    ));
    let mut failing = Script {
        answers: vec![AskResult::Failed(Error::Timeout {
            path: "docs/a".to_owned(),
            seconds: 1,
        })],
        asked: Vec::new(),
    };
    assert!(
        bridge
            .read_file(&text("docs/a"), None, &mut failing, now)
            .is_err()
    );
    assert_eq!(bridge.cache_usage(now.steady).entries, 0);
}

#[test]
fn what_is_no_text_over_there_is_asked_for_as_bytes() {
    let (bridge, now) = (bridge(), Now::read());
    let request = FileRequest {
        encoding: Some(TextEncoding::named("shift_jis").unwrap()),
        ..text("docs/a")
    };
    let mut agent = Script::answering(&[NOT_TEXT, "ff 41"]);
    let read = done(bridge.read_file(&request, None, &mut agent, now));
    assert_eq!(read.content, FileContent::Text("ÿA".to_owned()));
    assert!(matches!(read.warnings[..], [Warning::Fallback { .. }]));
    let shapes: Vec<Subject> = agent.asked.into_iter().map(|asked| asked.subject).collect();
    let encoding = TextEncoding::named("shift_jis").unwrap();
    let subject = |shape| Subject::File { shape, encoding };
    assert_eq!(
        shapes,
        [subject(ContentShape::Text), subject(ContentShape::Bytes)]
    );
}

#[test]
fn bytes_are_kept_as_they_are_and_read_as_text_where_they_are_text() {
    let (bridge, now) = (bridge(), Now::read());
    let request = FileRequest {
        shape: ContentShape::Bytes,
        ..text("docs/a")
    };
    let mut agent = Script::answering(&["e3 83 86"]);
    let read = done(bridge.read_file(&request, None, &mut agent, now));
    assert_eq!(read.content, FileContent::Bytes(vec![0xe3, 0x83, 0x86]));
    let as_text = done(bridge.read_file(&text("docs/a"), None, &mut agent, now));
    assert_eq!(as_text.content, FileContent::Text("テ".to_owned()));
    let mut agent = Script::answering(&["00 ff"]);
    let request = FileRequest {
        path: "docs/b".to_owned(),
        ..request
    };
    done(bridge.read_file(&request, None, &mut agent, now));
    let binary = bridge.read_file(&text("docs/b"), None, &mut agent, now);
    assert!(
        matches!(binary, Err(Error::BadContent { .. })),
        "{binary:?}"
    );
}

#[test]
fn newer_files_and_refreshes_are_asked_for_again() {
    let (bridge, now) = (bridge(), Now::read());
    let file = IncomingFile {
        mtime: Some(10.0),
        ..handover("docs/a", "old")
    };
    bridge.store(vec![file], now).unwrap();
    let mut agent = Script::answering(&["new", "newest"]);
    let newer = FileRequest {
        mtime: Some(11.0),
        ..text("docs/a")
    };
    let read = done(bridge.read_file(&newer, None, &mut agent, now));
    assert_eq!(read.content, FileContent::Text("new".to_owned()));
    assert_eq!(bridge.cache_usage(now.steady).counters.invalidations, 1);
    let refresh = FileRequest {
        freshness: Freshness::Refresh,
        ..text("docs/a")
    };
    let read = done(bridge.read_file(&refresh, None, &mut agent, now));
    assert_eq!(read.content, FileContent::Text("newest".to_owned()));
    // An answer that does not come leaves what was held.
    let waiting = bridge.read_file(&refresh, None, &mut agent, now).unwrap();
    assert!(matches!(waiting, StepOutcome::Waiting(_)));
    let held = done(bridge.read_file(&text("docs/a"), None, &mut agent, now));
    assert_eq!(held.content, FileContent::Text("newest".to_owned()));
}

#[test]
fn what_is_handed_over_while_asked_is_the_answer() {
    let (bridge, now) = (bridge(), Now::read());
    let mut agent = Script::default();
    let request = FileRequest {
        freshness: Freshness::Refresh,
        ..text("docs/a")
    };
    let Ok(StepOutcome::Waiting(question)) = bridge.read_file(&request, None, &mut agent, now)
    else {
        panic!("nobody answered")
    };
    assert!(!bridge.has_arrived(&question, now.wall, now));
    bridge
        .store(vec![handover("docs/a", "handed")], now.later(1))
        .unwrap();
    assert!(bridge.has_arrived(&question, now.wall, now.later(1)));
    let resume = resumed(now, None);
    let mut agent = Script::answering(&["I have cached it."]);
    let read = done(bridge.read_file(&request, Some(resume), &mut agent, now.later(2)));
    assert_eq!(read.content, FileContent::Text("handed".to_owned()));
    assert_eq!(read.source, ContentSource::Handover);
    assert_eq!(bridge.cache_usage(now.steady).counters.misses, 1);
}

#[test]
fn a_handover_that_lacks_something_is_asked_for_once_more_and_no_more() {
    let (bridge, start) = (bridge(), Now::read());
    let (mut agent, request) = (Script::default(), directory("docs", true));
    let flat = || vec![entry("inner/")];
    let step =
        |resume, agent: &mut Script, now| bridge.list_directory(&request, resume, agent, now);
    assert!(matches!(
        step(None, &mut agent, start),
        Ok(StepOutcome::Waiting(_))
    ));
    bridge
        .store_listing("docs", flat(), None, start.later(1))
        .unwrap();
    let first = Some(resumed(start, None));
    let again = step(first, &mut agent, start.later(2));
    let Ok(StepOutcome::Waiting(question)) = again else {
        panic!("{again:?}")
    };
    assert_eq!(question.lack, Some(Lack::Children));
    // Whatever the second question brings, there is something to show.
    let second = Some(Resume {
        looked_at: start.later(2).wall,
        ..resumed(start, question.lack)
    });
    let timeout = AskResult::Failed(Error::Timeout {
        path: "docs".to_owned(),
        seconds: 1,
    });
    for answer in [timeout, answer("")] {
        let mut agent = Script {
            answers: vec![answer],
            asked: Vec::new(),
        };
        let read = done(step(second, &mut agent, start.later(3)));
        assert_eq!(read.source, ContentSource::Handover);
        assert_eq!(read.warnings, vec![Warning::Shallow]);
    }
    bridge
        .store_listing("docs", flat(), None, start.later(4))
        .unwrap();
    let read = done(step(second, &mut agent, start.later(5)));
    assert_eq!(read.warnings, [Warning::Shallow]);
    assert_eq!(agent.asked.len(), 1);
}

#[test]
fn a_batch_with_one_bad_path_stores_nothing() {
    let (bridge, now) = (bridge(), Now::read());
    let batch = vec![handover("docs/a", "1"), handover("../b", "2")];
    assert!(bridge.store(batch, now).is_err());
    assert_eq!(bridge.cache_usage(now.steady).entries, 0);
    let batch = vec![handover("docs/a", "1"), handover("docs/a", "22")];
    let stored = bridge.store(batch, now).unwrap();
    let statuses: Vec<StoreStatus> = stored.files.iter().map(|file| file.status).collect();
    assert_eq!(statuses, [StoreStatus::Cached, StoreStatus::Updated]);
    assert_eq!(bridge.cache_usage(now.steady).bytes, 2);
}

#[test]
fn an_upload_with_a_wrong_hash_is_not_stored() {
    let (bridge, now) = (bridge(), Now::read());
    let piece = |index, bytes: &[u8], content_hash: Option<&str>| Upload {
        file: handover("docs/a", ""),
        chunk: Some(Chunk {
            index,
            count: 2,
            bytes: bytes.to_vec(),
            hash: None,
            content_hash: None,
            held: crate::upload::HeldRoom::default(),
        }),
        content_hash: content_hash.map(str::to_owned),
    };
    let first = bridge.upload(piece(1, b"B", None), now).unwrap();
    let Uploaded::Partial { warnings, .. } = first else {
        panic!("{first:?}")
    };
    assert_eq!(warnings, [Warning::Unchecked { chunk: 1 }]);
    let failed = bridge.upload(piece(0, b"A", Some("00")), now);
    assert!(matches!(
        failed,
        Err(Error::HashDiffers { chunk: None, .. })
    ));
    assert_eq!(bridge.cache_usage(now.steady).entries, 0);
    // The hash of the whole may come with any chunk.
    bridge.upload(piece(0, b"A", Some("00")), now).unwrap();
    let failed = bridge.upload(piece(1, b"B", None), now);
    assert!(matches!(
        failed,
        Err(Error::HashDiffers { chunk: None, .. })
    ));
    assert_eq!(bridge.cache_usage(now.steady).entries, 0);
}

#[test]
fn a_listing_serves_the_directories_below_it() {
    let (bridge, now) = (bridge(), Now::read());
    let inner = PathInfo {
        children: Some(vec![entry("deep.md")]),
        ..entry("inner/")
    };
    bridge
        .store_listing("docs", vec![inner, entry("a.md")], None, now)
        .unwrap();
    let mut agent = Script::default();
    let top = done(bridge.list_directory(&directory("docs", false), None, &mut agent, now));
    assert_eq!(top.entries, [entry("a.md"), entry("inner/")]);
    let below = directory("docs/inner", true);
    let below = done(bridge.list_directory(&below, None, &mut agent, now));
    assert_eq!(below.entries, [entry("deep.md")]);
    assert!(agent.asked.is_empty());
    let other = bridge.list_directory(&directory("docs/other", false), None, &mut agent, now);
    assert!(matches!(other, Ok(StepOutcome::Waiting(_))));
}

#[test]
fn a_listing_that_is_not_deep_or_filtered_otherwise_will_not_do() {
    let (bridge, now) = (bridge(), Now::read());
    bridge
        .store_listing("docs", vec![entry("inner/")], None, now)
        .unwrap();
    let mut agent = Script::default();
    let deep = bridge.list_directory(&directory("docs", true), None, &mut agent, now);
    assert!(matches!(deep, Ok(StepOutcome::Waiting(_))));
    let is_md = |name: &str, _: &str| name.ends_with(".md");
    let filter: Option<(&str, Accepts<'_>)> = Some(("*.md", &is_md));
    let entries = vec![entry("a.md"), entry("a.rs")];
    let stored = bridge.store_listing("docs", entries, filter, now).unwrap();
    assert_eq!(
        stored.warnings,
        [Warning::LeftOut {
            files: 1,
            pattern: "*.md".to_owned()
        }]
    );
    let all = bridge.list_directory(&directory("docs", false), None, &mut agent, now);
    assert!(matches!(all, Ok(StepOutcome::Waiting(_))));
    let some = DirectoryRequest {
        filter,
        ..directory("docs", false)
    };
    let some = done(bridge.list_directory(&some, None, &mut agent, now));
    assert_eq!(some.entries, [entry("a.md")]);
}

/// Hands over files, then a listing, and returns what the listing invalidates.
fn invalidated(
    files: &[(&str, Option<f64>)],
    entries: Vec<PathInfo>,
    filter: Option<(&str, Accepts<'_>)>,
) -> Vec<String> {
    let (bridge, now) = (bridge(), Now::read());
    for (path, mtime) in files {
        let file = IncomingFile {
            mtime: *mtime,
            ..handover(path, "old")
        };
        bridge.store(vec![file], now).unwrap();
    }
    let stored = bridge.store_listing("docs", entries, filter, now.later(1));
    stored.unwrap().invalidated
}

#[test]
fn a_listing_with_other_times_or_sizes_invalidates_content() {
    let changed = |name, size, mtime| PathInfo {
        size,
        mtime,
        ..entry(name)
    };
    let files = ["a", "b", "c", "d", "e", "f"].map(|name| format!("docs/{name}"));
    let files: Vec<(&str, Option<f64>)> = files
        .iter()
        .map(|path| (path.as_str(), Some(10.5)))
        .collect();
    let entries = vec![
        changed("a", Some(3), Some(10.5)),
        changed("b", None, Some(11.0)),
        changed("c", None, Some(9.0)),
        changed("d", Some(4), None),
        // Whole seconds are the same time told less exactly.
        changed("e", None, Some(10.0)),
        entry("f/"),
    ];
    assert_eq!(
        invalidated(&files, entries, None),
        ["docs/b", "docs/c", "docs/d", "docs/f"]
    );
    let untimed = [("docs/a", None), ("docs/b", None)];
    let soon = Now::read().later(100).wall;
    let entries = vec![
        changed("a", None, Some(5.0)),
        changed("b", None, Some(soon)),
    ];
    assert_eq!(invalidated(&untimed, entries, None), ["docs/b"]);
}

#[test]
fn a_listing_without_a_file_invalidates_it() {
    let files = [
        ("docs/gone.md", None),
        ("docs/there.md", None),
        ("docs/sub/x.md", None),
        ("docs/shut/y.md", None),
        ("docs/lost/z.md", None),
    ];
    let sub = PathInfo {
        children: Some(Vec::new()),
        ..entry("sub/")
    };
    let entries = vec![entry("there.md"), sub.clone(), entry("shut/")];
    assert_eq!(
        invalidated(&files, entries, None),
        ["docs/gone.md", "docs/lost/z.md", "docs/sub/x.md"],
        "what is below a directory that was not listed stays"
    );
    // A filtered listing says nothing of names that it leaves out.
    let is_there = |name: &str, _: &str| name.starts_with('g');
    let entries = vec![sub];
    let filter: Option<(&str, Accepts<'_>)> = Some(("g*", &is_there));
    assert_eq!(invalidated(&files, entries, filter), ["docs/gone.md"]);
}

#[test]
fn clients_have_files_of_their_own() {
    let (shared, now) = (shared_bridge(), Now::read());
    let (one, other) = (
        shared.of(CacheOwner::alone("one")),
        shared.of(CacheOwner::alone("other")),
    );
    one.store(vec![handover("docs/a", "mine")], now).unwrap();
    let mut agent = Script::default();
    let asked = other.read_file(&text("docs/a"), None, &mut agent, now);
    assert!(matches!(asked, Ok(StepOutcome::Waiting(_))), "{asked:?}");
    other
        .store(vec![handover("docs/a", "theirs")], now)
        .unwrap();
    other.store_listing("docs", Vec::new(), None, now).unwrap();
    let own = done(one.read_file(&text("docs/a"), None, &mut agent, now));
    assert_eq!(own.content, FileContent::Text("mine".to_owned()));
    let asked = one.list_directory(&directory("docs", false), None, &mut agent, now);
    assert!(matches!(asked, Ok(StepOutcome::Waiting(_))));
    assert!(!one.has_arrived(&agent.asked[1], now.wall, now));
}

#[test]
fn what_has_no_time_is_asked_for_again_after_a_while() {
    let (bridge, now) = (bridge(), Now::read());
    let timed = IncomingFile {
        mtime: Some(10.0),
        ..handover("docs/timed", "old")
    };
    let files = vec![timed, handover("docs/a", "old")];
    bridge.store(files, now).unwrap();
    bridge
        .store_listing("docs/sub", Vec::new(), None, now)
        .unwrap();
    let later = now.later(60);
    let mut agent = Script::default();
    let timed = done(bridge.read_file(&text("docs/timed"), None, &mut agent, later));
    assert_eq!(timed.source, ContentSource::Cache);
    let asked = bridge.read_file(&text("docs/a"), None, &mut agent, later);
    assert!(matches!(asked, Ok(StepOutcome::Waiting(_))), "{asked:?}");
    // If there is nobody to ask, what was handed over is better than nothing.
    let mute = || {
        AskResult::Failed(Error::Unsupported {
            path: String::new(),
            why: crate::error::Mute::Client,
        })
    };
    let mut nobody = Script {
        answers: vec![mute(), mute(), mute()],
        asked: Vec::new(),
    };
    let age = Duration::from_secs(60);
    let old = done(bridge.read_file(&text("docs/a"), None, &mut nobody, later));
    assert_eq!(old.warnings, [Warning::NotRechecked { age }]);
    let listing = directory("docs/sub", false);
    let old = done(bridge.list_directory(&listing, None, &mut nobody, later));
    assert_eq!(old.warnings, [Warning::NotRechecked { age }]);
    let refresh = FileRequest {
        freshness: Freshness::Refresh,
        ..text("docs/a")
    };
    assert!(
        bridge
            .read_file(&refresh, None, &mut nobody, later)
            .is_err()
    );
}

#[test]
fn an_answer_tells_time_and_size() {
    let (bridge, now) = (bridge(), Now::read());
    let sized = PathInfo {
        size: Some(4),
        ..entry("a")
    };
    bridge
        .store_listing("docs", vec![sized], None, now)
        .unwrap();
    let told = Told {
        content: "# A".to_owned(),
        mtime: Some(7.0),
        size: Some(4),
    };
    let mut agent = Script {
        answers: vec![AskResult::Answered(told)],
        asked: Vec::new(),
    };
    let read = done(bridge.read_file(&text("docs/a"), None, &mut agent, now));
    assert_eq!(agent.asked[0].size, Some(4), "a listing told it");
    assert_eq!(read.file.mtime, Some(7.0));
    assert!(matches!(
        read.warnings[..],
        [Warning::SizeDiffers {
            told: 4,
            found: 3,
            ..
        }]
    ));
}

#[test]
fn an_answer_to_another_call_is_no_handover() {
    let (bridge, now) = (bridge(), Now::read());
    let mut agent = Script::default();
    let Ok(StepOutcome::Waiting(question)) =
        bridge.read_file(&text("docs/a"), None, &mut agent, now)
    else {
        panic!("nobody answered")
    };
    let mut other = Script::answering(&["told"]);
    done(bridge.read_file(&text("docs/a"), None, &mut other, now.later(1)));
    assert!(!bridge.has_arrived(&question, now.wall, now.later(1)));
    let resume = Some(resumed(now, None));
    let read = done(bridge.read_file(&text("docs/a"), resume, &mut agent, now.later(2)));
    assert_eq!(read.source, ContentSource::Answer);
}

#[test]
fn listings_are_judged_name_by_name() {
    let (bridge, now) = (bridge(), Now::read());
    let store = |entries| {
        bridge
            .store_listing("docs", entries, None, now)
            .unwrap_err()
    };
    assert!(matches!(
        store(vec![entry("../x")]),
        Error::Violation { .. }
    ));
    assert!(matches!(
        store(vec![entry("a"), entry("a")]),
        Error::BadListing { .. }
    ));
    let odd = PathInfo {
        children: Some(Vec::new()),
        ..entry("a")
    };
    assert!(matches!(store(vec![odd]), Error::BadListing { .. }));
}
