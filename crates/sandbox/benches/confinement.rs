//! What confinement costs, in pairs: confined, plain (no confinement at all) and naive (canonicalise,
//! compare, open), each at depth 4.
//!
//! Goals: a bulk open at most 1.3 times a plain one, a strict one at most 0.6 times a naive one.
#![expect(
    clippy::disallowed_methods,
    reason = "the plain and naive ways are what confinement is compared with"
)]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use criterion::{Criterion, criterion_group};
use sandbox::{Dir, Follow, Located, Name, RelPath, Root, WalkOptions, Walker};
use tempfile::TempDir;

const DIR: &str = "one/two/three/four";
const FILE: &str = "one/two/three/four/file";
/// How many files the listed directory has, and how many directories of as many files the walked tree.
const ENTRIES: usize = 64;
/// How many rounds the ways to open a file are compared in, and how many calls each makes in a round.
const ROUNDS: usize = 1_000;
const CALLS: u32 = 50;

struct Ground {
    root: Root,
    /// The directory of the file, open as a search has it, and the name of the file in it.
    dir: Dir,
    name: Name,
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
        let root = Root::open(&inside).unwrap();
        let path = RelPath::parse(DIR).unwrap();
        Ground {
            dir: root
                .locate(&path, Follow::Last)
                .unwrap()
                .open_dir()
                .unwrap(),
            name: Name::new(b"file").unwrap(),
            root,
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

/// One way to open the file.
type Opening = fn(&Ground);

/// Every way to open a file, with the one it is measured against and the goal of their ratio.
const OPENINGS: [(&str, Opening, &str); 5] = [
    ("plain", open_plainly, ""),
    ("naive", open_naively, ""),
    ("bulk", open_in_bulk, "plain ≤ 1.30"),
    ("strict", open_strictly, "naive ≤ 0.60"),
    ("located", open_located, "naive ≤ 1.00"),
];

fn open_plainly(ground: &Ground) {
    black_box(File::open(ground.plain(FILE)).unwrap());
}

fn open_naively(ground: &Ground) {
    black_box(File::open(ground.naive(FILE)).unwrap());
}

fn open_in_bulk(ground: &Ground) {
    black_box(
        ground
            .dir
            .open_file_unnamed(black_box(&ground.name))
            .unwrap(),
    );
}

fn open_strictly(ground: &Ground) {
    let path = RelPath::parse(black_box(FILE)).unwrap();
    black_box(ground.root.open_file(&path).unwrap());
}

fn open_located(ground: &Ground) {
    black_box(ground.confined(FILE).open_file().unwrap());
}

/// Prints how the ways to open a file compare, each taken in turn round by round, so that a busy machine
/// disturbs all of them alike.
fn compare_openings() -> io::Result<()> {
    let ground = Ground::new();
    let rounds: Vec<[f64; 5]> = (0..ROUNDS)
        .map(|_| OPENINGS.map(|(_, opening, _)| time(&ground, opening)))
        .collect();
    let ratio = |a: usize, b: usize| middle(rounds.iter().map(|round| round[a] / round[b]));
    let mut out = io::stdout().lock();
    writeln!(out, "| open | µs | / plain | / naive | goal |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for (index, (name, _, goal)) in OPENINGS.iter().enumerate() {
        let micros = middle(rounds.iter().map(|round| round[index]));
        let (plain, naive) = (ratio(index, 0), ratio(index, 1));
        writeln!(
            out,
            "| {name} | {micros:.2} | {plain:.2} | {naive:.2} | {goal} |"
        )?;
    }
    Ok(())
}

/// Microseconds of one call.
fn time(ground: &Ground, opening: Opening) -> f64 {
    let begun = Instant::now();
    (0..CALLS).for_each(|_| opening(ground));
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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

criterion_group!(benches, stat, list, walk);

fn main() -> io::Result<()> {
    compare_openings()?;
    benches();
    Criterion::default().configure_from_args().final_summary();
    Ok(())
}
