//! What confinement costs, in pairs: confined, plain (no confinement at all) and naive (canonicalise,
//! compare, open), each at depth 4.
//!
//! Goals: `open/bulk` at most 1.3 times `open/plain`, `open/strict` at most 0.6 times `open/naive`.
#![expect(
    clippy::disallowed_methods,
    reason = "the plain and naive ways are what confinement is compared with"
)]

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, criterion_group, criterion_main};
use sandbox::{Follow, Located, RelPath, Root, WalkOptions, Walker};
use tempfile::TempDir;

const DIR: &str = "one/two/three/four";
const FILE: &str = "one/two/three/four/file";
/// How many files the listed directory has, and how many directories of as many files the walked tree.
const ENTRIES: usize = 64;

struct Ground {
    root: Root,
    inside: PathBuf,
    _temp: TempDir,
}

impl Ground {
    fn new() -> Ground {
        let temp = tempfile::tempdir().unwrap();
        let inside = fs::canonicalize(temp.path()).unwrap();
        for outer in 0..ENTRIES {
            let dir = inside.join(DIR).join(format!("dir{outer}"));
            fs::create_dir_all(&dir).unwrap();
            fs::write(inside.join(DIR).join(format!("file{outer}")), "text").unwrap();
            for inner in 0..ENTRIES {
                fs::write(dir.join(format!("file{inner}")), "text").unwrap();
            }
        }
        fs::write(inside.join(FILE), "text").unwrap();
        Ground {
            root: Root::open(&inside).unwrap(),
            inside,
            _temp: temp,
        }
    }

    fn confined(&self, path: &str) -> Located<'_> {
        let path = RelPath::parse(black_box(path)).unwrap();
        self.root.locate(&path, Follow::Last).unwrap()
    }

    fn plain(&self, path: &str) -> PathBuf {
        self.inside.join(black_box(path))
    }

    fn naive(&self, path: &str) -> PathBuf {
        let real = fs::canonicalize(self.plain(path)).unwrap();
        assert!(real.starts_with(&self.inside));
        real
    }
}

fn open(criterion: &mut Criterion) {
    let ground = Ground::new();
    let mut group = criterion.benchmark_group("open");
    group.bench_function("plain", |b| {
        b.iter(|| File::open(ground.plain(FILE)).unwrap())
    });
    group.bench_function("bulk", |b| {
        b.iter(|| {
            ground
                .root
                .open_bulk(&RelPath::parse(black_box(FILE)).unwrap())
                .unwrap()
        });
    });
    group.bench_function("strict", |b| {
        b.iter(|| {
            ground
                .root
                .open_file(&RelPath::parse(black_box(FILE)).unwrap())
                .unwrap()
        });
    });
    group.bench_function("located", |b| {
        b.iter(|| ground.confined(FILE).open_file().unwrap())
    });
    group.bench_function("naive", |b| {
        b.iter(|| File::open(ground.naive(FILE)).unwrap())
    });
}

fn stat(criterion: &mut Criterion) {
    let ground = Ground::new();
    let mut group = criterion.benchmark_group("stat");
    group.bench_function("plain", |b| {
        b.iter(|| fs::metadata(ground.plain(FILE)).unwrap())
    });
    group.bench_function("confined", |b| {
        b.iter(|| ground.confined(FILE).require().unwrap())
    });
    group.bench_function("naive", |b| {
        b.iter(|| fs::metadata(ground.naive(FILE)).unwrap())
    });
}

fn list_plainly(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .filter(|entry| entry.as_ref().unwrap().file_type().is_ok())
        .count()
}

fn list(criterion: &mut Criterion) {
    let ground = Ground::new();
    let mut group = criterion.benchmark_group("list");
    group.bench_function("plain", |b| b.iter(|| list_plainly(&ground.plain(DIR))));
    group.bench_function("confined", |b| {
        b.iter(|| {
            ground
                .confined(DIR)
                .open_dir()
                .unwrap()
                .entries()
                .unwrap()
                .len()
        });
    });
    group.bench_function("naive", |b| b.iter(|| list_plainly(&ground.naive(DIR))));
}

fn walk_confined(ground: &Ground) -> usize {
    let top = ground.confined(DIR).open_dir().unwrap();
    let mut walker = Walker::new(top, WalkOptions::default());
    let mut met = 0;
    while let Some(item) = walker.next(&mut |_| true) {
        black_box(item.unwrap());
        met += 1;
    }
    met
}

/// Walks in the same order; `check` is what a naive server does with each directory.
fn walk_plainly(dir: &Path, check: &dyn Fn(&Path) -> PathBuf) -> usize {
    let entries = fs::read_dir(check(dir))
        .unwrap()
        .map(|entry| entry.unwrap());
    let mut entries: Vec<_> = entries
        .map(|entry| (entry.path(), entry.file_type()))
        .collect();
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let below = entries.iter().map(|(path, kind)| match kind {
        Ok(kind) if kind.is_dir() => 1 + walk_plainly(path, check),
        _ => 1,
    });
    below.sum()
}

fn walk(criterion: &mut Criterion) {
    let ground = Ground::new();
    let canonical = |dir: &Path| {
        let real = fs::canonicalize(dir).unwrap();
        assert!(real.starts_with(&ground.inside));
        real
    };
    let mut group = criterion.benchmark_group("walk");
    let plain = |check: &dyn Fn(&Path) -> PathBuf| walk_plainly(&ground.plain(DIR), check);
    group.bench_function("plain", |b| b.iter(|| plain(&Path::to_owned)));
    group.bench_function("confined", |b| b.iter(|| walk_confined(&ground)));
    group.bench_function("naive", |b| b.iter(|| plain(&canonical)));
}

criterion_group!(benches, open, stat, list, walk);
criterion_main!(benches);
