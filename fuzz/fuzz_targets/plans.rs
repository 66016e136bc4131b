//! Any sequence of operations, the making of links included, leaves what is outside as it was.
#![no_main]

use std::fs;
use std::io::Write;
use std::path::Path;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sandbox::{
    Change, Durability, Error, Follow, Located, Name, OnExisting, OnFault, OpenFile, Parents,
    RelPath, Resolver, Root, WalkOptions, Walker,
};
use tempfile::TempDir;

const SECRET: &str = "SECRET";
/// The most operations of one plan.
const LENGTH: usize = 24;

/// Pieces of paths: few, so that operations meet.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Piece {
    A,
    B,
    C,
    Up,
    Here,
    Empty,
    Inside,
    Outside,
    Secret,
}

impl Piece {
    fn text(self) -> &'static str {
        match self {
            Piece::A => "a",
            Piece::B => "b",
            Piece::C => "c",
            Piece::Up => "..",
            Piece::Here => ".",
            Piece::Empty => "",
            Piece::Inside => "inside",
            Piece::Outside => "outside",
            Piece::Secret => "secret",
        }
    }
}

type Pieces = Vec<Piece>;

#[derive(Debug, Arbitrary)]
enum Action {
    Read(Pieces),
    Write(Pieces, bool),
    Append(Pieces),
    MakeDirs(Pieces),
    Link {
        at: Pieces,
        name: Piece,
        text: Pieces,
        absolute: bool,
    },
    Rename(Pieces, Pieces, bool),
    Unlink(Pieces),
    RemoveTree(Pieces),
    Walk(Pieces),
    Target(Pieces),
}

#[derive(Debug, Arbitrary)]
struct Plan {
    resolver: u8,
    actions: Vec<Action>,
}

fn joined(pieces: &[Piece]) -> String {
    let pieces: Vec<&str> = pieces.iter().take(12).map(|piece| piece.text()).collect();
    pieces.join("/")
}

fn locate<'root>(
    root: &'root Root,
    pieces: &[Piece],
    follow: Follow,
) -> Result<Located<'root>, Error> {
    root.locate(&RelPath::parse(&joined(pieces))?, follow)
}

fn change() -> Change {
    Change::begin(Durability::Fast)
}

fn not_secret(file: OpenFile) {
    assert_ne!(std::io::read_to_string(file).unwrap_or_default(), SECRET);
}

fn write(place: &Located<'_>, replace: bool) -> Result<(), Error> {
    let on_existing = if replace {
        OnExisting::Replace
    } else {
        OnExisting::Fail
    };
    let mut staged = change().stage(place, on_existing, Parents::Create)?;
    staged.write_all(b"ours").unwrap();
    staged.commit().map(drop)
}

fn walk(place: &Located<'_>) -> Result<(), Error> {
    let mut walker = Walker::new(place.open_dir()?, WalkOptions::default());
    while let Some(item) = walker.next(&mut |_| true) {
        let Ok(item) = item else { continue };
        if let Ok(opened) = item.dir.open_file(&item.name) {
            not_secret(opened);
        }
    }
    Ok(())
}

fn run(root: &Root, base: &Path, action: &Action) -> Result<(), Error> {
    match action {
        Action::Read(path) => not_secret(locate(root, path, Follow::Last)?.open_file()?),
        Action::Write(path, replace) => write(&locate(root, path, Follow::Last)?, *replace)?,
        Action::Append(path) => {
            let place = locate(root, path, Follow::Last)?;
            change().append(&place, b"more", Parents::Create)?;
        }
        Action::MakeDirs(path) => {
            change().make_dirs(&locate(root, path, Follow::Last)?)?;
        }
        Action::Link {
            at,
            name,
            text,
            absolute,
        } => {
            let top = if *absolute {
                format!("{}/", base.display())
            } else {
                String::new()
            };
            let dir = locate(root, at, Follow::Last)?.open_dir()?;
            if let Some(name) = Name::new(name.text().as_bytes()) {
                change().make_link_in(&dir, &name, format!("{top}{}", joined(text)).as_bytes())?;
            }
        }
        Action::Rename(from, to, replace) => {
            let on_existing = if *replace {
                OnExisting::Replace
            } else {
                OnExisting::Fail
            };
            let to = locate(root, to, Follow::Never)?;
            let from = locate(root, from, Follow::Never)?;
            change().rename(&from, &to, on_existing, &|| false)?;
        }
        Action::Unlink(path) => change().unlink(&locate(root, path, Follow::Never)?)?,
        Action::RemoveTree(path) => {
            let tree = locate(root, path, Follow::Never)?;
            change().remove_tree(&tree, &|| false, OnFault::Collect, &|_| {})?;
        }
        Action::Walk(path) => walk(&locate(root, path, Follow::Last)?)?,
        Action::Target(path) => {
            locate(root, path, Follow::Never)?.link_target()?;
        }
    }
    Ok(())
}

/// A fresh directory, in memory where there is such a place.
fn fresh_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

fuzz_target!(|plan: Plan| {
    let temp = fresh_dir();
    let base = temp.path();
    fs::create_dir(base.join("inside")).unwrap();
    fs::create_dir(base.join("outside")).unwrap();
    fs::write(base.join("outside/secret"), SECRET).unwrap();
    let resolvers = [
        Resolver::Auto,
        Resolver::WalkOnly,
        Resolver::WalkWithoutProc,
    ];
    let resolver = resolvers[usize::from(plan.resolver) % resolvers.len()];
    let root = Root::open_with(&base.join("inside"), resolver).unwrap();
    for action in plan.actions.iter().take(LENGTH) {
        let _ = run(&root, base, action);
    }
    let names = |dir: &Path| -> Vec<_> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(base).len(), 2);
    assert_eq!(names(&base.join("outside")), ["secret"]);
    assert_eq!(
        fs::read_to_string(base.join("outside/secret")).unwrap(),
        SECRET
    );
});
