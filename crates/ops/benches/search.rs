//! Searches over a generated tree, for comparing one version with the next on the same machine.
#![expect(clippy::disallowed_methods, reason = "the tree is built from outside")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ops::{
    Cancel, Case, CompressedFiles, Context, Glob, Grep, IgnoreRules, Kinds, Limits, Operation,
    PathPattern, Pattern, Place, SearchFrom, SearchOutput, Syntax, Users,
};
use sandbox::Root;

const FILES: u64 = 5_000;
const LARGE: usize = 64 * 1024 * 1024;

/// A sequence that is the same in every run.
struct Sequence(u64);

impl Sequence {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % below
    }
}

fn source(sequence: &mut Sequence) -> String {
    const WORDS: [&str; 8] = [
        "let", "return", "config", "Error", "value", "index", "buffer", "match",
    ];
    let mut text = String::new();
    for _ in 0..sequence.next(400) {
        for _ in 0..sequence.next(12) {
            let word = WORDS[sequence.next(8) as usize];
            let _ = write!(text, "{word} {} ", sequence.next(1000));
        }
        text.push('\n');
    }
    text
}

fn build(directory: &Path) {
    let mut sequence = Sequence(7);
    for number in 0..FILES {
        let below = directory.join(format!("d{}/e{}", number % 30, number % 300));
        std::fs::create_dir_all(&below).unwrap();
        let extension = ["rs", "toml", "md", "txt"][(number % 4) as usize];
        std::fs::write(
            below.join(format!("f{number}.{extension}")),
            source(&mut sequence),
        )
        .unwrap();
    }
    let mut large = String::new();
    while large.len() < LARGE {
        large.push_str(&source(&mut sequence));
    }
    std::fs::write(directory.join("large.log"), large).unwrap();
}

fn grep(root: &Arc<Root>, path: &str, pattern: &str) -> Grep {
    Grep {
        place: Place::new(Arc::clone(root), path).unwrap(),
        pattern: Pattern {
            texts: vec![pattern.to_owned()],
            syntax: Syntax::Regex,
            case: Case::Sensitive,
        },
        filter: None,
        context_lines: 0,
        max_results: 100_000,
        timeout: Duration::from_secs(300),
        max_depth: None,
        max_file_size: None,
        ignore_rules: IgnoreRules::Disregard,
        output: SearchOutput::Matches,
        from: SearchFrom::Start,
        compressed: CompressedFiles::AsTheyAre,
    }
}

fn glob(root: &Arc<Root>, pattern: &str) -> Glob {
    Glob {
        place: Place::new(Arc::clone(root), ".").unwrap(),
        pattern: PathPattern::Glob(pattern.to_owned()),
        kinds: Kinds::All,
        max_results: 100_000,
        timeout: Duration::from_secs(300),
        max_depth: None,
        ignore_rules: IgnoreRules::Disregard,
        order: ops::GlobOrder::Path,
        exclude: Vec::new(),
    }
}

fn searches(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    build(directory.path());
    let root = Arc::new(Root::open(directory.path()).unwrap());
    let context = Context {
        consent: ops::Consent::default(),
        limits: Arc::new(Limits::for_tests()),
        users: Arc::new(Users::load()),
        line_index_cache: Arc::default(),
        search_memory: Arc::default(),
        change_notes: sandbox::ChangeNotes::default(),
        cancel: Cancel::never(),
        room: None,
    };
    let mut group = criterion.benchmark_group("search");
    group.sample_size(10);
    for (name, path, pattern) in [
        ("rare literal", ".", "config 77 config 78"),
        ("common literal", ".", "Error 1"),
        ("no literal", ".", r"\b\w{6} \d\d\d \w{5}\b 1$"),
        ("one large file", "large.log", "config 77 config 78"),
    ] {
        let request = grep(&root, path, pattern);
        group.bench_function(name, |b| b.iter(|| request.clone().run(&context).unwrap()));
    }
    for (name, pattern) in [("all names", "**/*.rs"), ("pruned names", "d1/**/*.rs")] {
        let request = glob(&root, pattern);
        group.bench_function(name, |b| b.iter(|| request.clone().run(&context).unwrap()));
    }
    group.finish();
}

criterion_group!(benches, searches);
criterion_main!(benches);
