//! Grep, copy and removal of whole trees, for comparing one version with the next on the same machine.
#![expect(
    clippy::disallowed_methods,
    reason = "the trees are built from outside"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use ops::{
    Cancel, Case, CompressedFiles, Context, Copy, Grep, IgnoreRules, Limits, OnDirectory,
    OnExisting, OnFault, OnMissing, Operation, Pattern, Place, Recurse, Remove, RemoveTarget,
    SearchFrom, SearchOutput, Syntax, Users,
};
use sandbox::Root;

const SEARCHED: usize = 20_000;
const COPIED: usize = 10_000;

/// Files of 1 KiB, a hundred in a directory, ten directories in each of those above.
fn build(top: &Path, files: usize) {
    for directory in 0..files / 100 {
        let below = top.join(format!("d{}/e{}", directory / 10, directory % 10));
        std::fs::create_dir_all(&below).unwrap();
        for number in 0..100 {
            let line = format!("{directory} {number} one line of text like any other\n");
            std::fs::write(below.join(format!("f{number}.txt")), line.repeat(24)).unwrap();
        }
    }
}

fn context() -> Context {
    Context {
        consent: ops::Consent::default(),
        limits: Arc::new(Limits::for_tests()),
        users: Arc::new(Users::load()),
        line_index_cache: Arc::default(),
        search_memory: Arc::default(),
        change_notes: sandbox::ChangeNotes::default(),
        cancel: Cancel::never(),
        room: None,
    }
}

fn grep(root: &Arc<Root>) -> Grep {
    Grep {
        place: Place::new(Arc::clone(root), "searched").unwrap(),
        pattern: Pattern {
            texts: vec!["77 99 one.*any".to_owned()],
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

fn copy(root: &Arc<Root>) -> Copy {
    Copy {
        source: Place::new(Arc::clone(root), "copied").unwrap(),
        destination: Place::new(Arc::clone(root), "copy").unwrap(),
        on_existing: OnExisting::Fail,
        on_directory: OnDirectory::Onto,
        recurse: Recurse::Yes,
    }
}

fn remove(root: &Arc<Root>) -> Remove {
    Remove {
        place: Place::new(Arc::clone(root), "copy").unwrap(),
        target: RemoveTarget::Directory,
        recurse: Recurse::Yes,
        on_missing: OnMissing::Fail,
        on_fault: OnFault::Stop,
    }
}

fn timed<Outcome>(operation: impl Operation<Outcome = Outcome>) -> Duration {
    let context = context();
    let start = Instant::now();
    operation.run(&context).unwrap();
    start.elapsed()
}

fn trees(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    build(&directory.path().join("searched"), SEARCHED);
    build(&directory.path().join("copied"), COPIED);
    let root = Arc::new(Root::open(directory.path()).unwrap());
    let mut group = criterion.benchmark_group("tree");
    group.sample_size(10);
    group.bench_function("grep 20000 files", |b| {
        b.iter(|| grep(&root).run(&context()).unwrap());
    });
    group.bench_function("copy 10000 files", |b| {
        b.iter_custom(|rounds| {
            let round = |_| {
                let copying = timed(copy(&root));
                timed(remove(&root));
                copying
            };
            (0..rounds).map(round).sum()
        });
    });
    group.bench_function("remove 10000 files", |b| {
        b.iter_custom(|rounds| {
            let round = |_| {
                timed(copy(&root));
                timed(remove(&root))
            };
            (0..rounds).map(round).sum()
        });
    });
    group.finish();
}

criterion_group!(benches, trees);
criterion_main!(benches);
