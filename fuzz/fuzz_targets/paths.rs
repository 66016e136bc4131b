//! Any text as a path: parsing never panics, says the same of what it says, and nothing leads out.
#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sandbox::{Follow, RelPath, Resolver, Root, shown};
use tempfile::TempDir;

struct Ground {
    roots: Vec<Root>,
    _temp: TempDir,
}

fn build(base: &Path) {
    fs::create_dir_all(base.join("inside/a/b")).unwrap();
    fs::create_dir(base.join("outside")).unwrap();
    fs::write(base.join("inside/a/b/c"), "inside").unwrap();
    fs::write(base.join("outside/c"), "SECRET").unwrap();
    for (text, name) in [
        ("a", "l"),
        ("../outside", "o"),
        ("/", "r"),
        ("x", "x"),
        ("a/b/..", "u"),
    ] {
        symlink(text, base.join("inside").join(name)).unwrap();
    }
}

fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(|| {
        let temp = tempfile::tempdir().unwrap();
        build(temp.path());
        let inside = temp.path().join("inside");
        let resolvers = [
            Resolver::Auto,
            Resolver::WalkOnly,
            Resolver::WalkWithoutProc,
        ];
        let roots = resolvers.map(|resolver| Root::open_with(&inside, resolver).unwrap());
        Ground {
            roots: roots.into(),
            _temp: temp,
        }
    })
}

/// What a root says of a path, in a form that all means of look-up have to agree on.
fn said(root: &Root, path: &RelPath, follow: Follow) -> String {
    match root.locate(path, follow) {
        Ok(place) => {
            if let Ok(opened) = place.open_file() {
                let text = std::io::read_to_string(opened).unwrap();
                assert_eq!(text, "inside");
            }
            format!(
                "{} {:?}",
                place.path(),
                place.metadata().map(|found| found.inode)
            )
        }
        Err(error) => format!("{error:?}"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let text = shown(bytes);
    let Ok(path) = RelPath::parse(&text) else {
        return;
    };
    assert_eq!(path.as_given(), text);
    for follow in [Follow::Last, Follow::Never] {
        let all: Vec<String> = ground()
            .roots
            .iter()
            .map(|root| said(root, &path, follow))
            .collect();
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    }
});
