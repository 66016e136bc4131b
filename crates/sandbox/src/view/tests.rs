use proptest::prelude::*;

use super::*;
use crate::view::glob::ViewGlob;

fn view(paths: &[&str], deny: &[&str]) -> View {
    View::new(paths, deny).unwrap().unwrap()
}

fn files<'a>(view: &View, paths: &[&'a str]) -> Vec<&'a str> {
    let shown = paths.iter().copied();
    shown
        .filter(|path| view.shows(path.as_bytes(), FileKind::File))
        .collect()
}

#[test]
fn the_last_glob_that_matches_decides() {
    let view = view(
        &[
            "src/**",
            "docs/**",
            "!docs/private/**",
            "docs/private/open.md",
        ],
        &[],
    );
    let all = [
        "src/a",
        "src/b/c",
        "docs/x",
        "docs/private/x",
        "docs/private/open.md",
        "other",
    ];
    assert_eq!(
        files(&view, &all),
        ["src/a", "src/b/c", "docs/x", "docs/private/open.md"]
    );
    for dir in ["src", "docs", "docs/private"] {
        assert!(view.shows(dir.as_bytes(), FileKind::Directory), "{dir}");
    }
    // What leads on is a directory, never a file or a link.
    assert!(!view.shows(b"src", FileKind::File) && !view.shows(b"src", FileKind::Symlink));
    assert!(!view.shows(b"other", FileKind::Directory));
    assert!(view.shows_all_below(b"src") && !view.shows_all_below(b"docs"));
}

#[test]
fn exceptions_alone_begin_with_everything() {
    let view = view(&["!build/**", "!*.log"], &[]);
    let all = ["a", "build/x", "x.log", "deep/x.log"];
    assert_eq!(files(&view, &all), ["a", "deep/x.log"]);
    assert!(view.shows(b"build", FileKind::Directory));
}

#[test]
fn a_directory_that_matches_is_matched_with_all_below_it() {
    let view = view(&[], &["build", "!build/keep", "/top.txt", "x/"]);
    let all = [
        "build/a",
        "build/keep/a",
        "build/keep",
        "top.txt",
        "sub/top.txt",
        "x/y",
    ];
    assert_eq!(
        files(&view, &all),
        ["build/keep/a", "build/keep", "sub/top.txt"]
    );
    assert!(view.shows(b"build", FileKind::Directory));
    assert!(!view.shows(b"x", FileKind::Directory));
}

#[test]
fn the_shipped_list_hides_what_holds_secrets() {
    let view = view(&[], &["secrets", "!**/fixture.pem"]);
    let hidden = [
        ".env",
        "app/.env.local",
        "deep/er/key.pem",
        "id_ed25519",
        "home/.ssh/config",
        ".aws/credentials",
        ".netrc",
        "vault.kdbx",
        "credentials-prod.json",
        ".kube/config",
        "infra/terraform.tfstate",
    ];
    assert_eq!(files(&view, &hidden), [""; 0]);
    let shown = [
        ".env.example",
        "id_ed25519.pub",
        "src/environment.rs",
        "test/fixture.pem",
        "README.md",
    ];
    assert_eq!(files(&view, &shown), shown);
    let plain = super::View::new(&[] as &[&str], &["secrets"])
        .unwrap()
        .unwrap();
    assert!(!plain.shows(b"home/.ssh", FileKind::Directory));
    // An own exception for every directory opens the way through all of them.
    assert!(view.shows(b"home/.ssh/fixture.pem", FileKind::File));
}

#[test]
fn both_lists_have_to_show_a_path() {
    let view = view(&["src/**"], &["**/.env"]);
    assert_eq!(files(&view, &["src/a", "src/.env", ".env", "b"]), ["src/a"]);
    assert!(View::new::<&str>(&[], &[]).unwrap().is_none());
}

#[test]
fn a_glob_that_cannot_be_read_says_why() {
    let reason = |glob: &str| View::new(&[glob], &[]).unwrap_err().reason;
    assert_eq!(reason(""), GlobReason::Empty);
    assert_eq!(reason("!"), GlobReason::Empty);
    assert_eq!(reason("a/../b"), GlobReason::Dots);
    assert_eq!(reason("a[b"), GlobReason::Unclosed);
    assert_eq!(reason("{a,b"), GlobReason::Unclosed);
    assert_eq!(reason("a}"), GlobReason::Unclosed);
    assert_eq!(reason("[z-a]"), GlobReason::Range);
    assert_eq!(reason("a\\"), GlobReason::Escape);
    assert_eq!(reason("a\0"), GlobReason::Nul);
    assert_eq!(reason(&"{a,b}".repeat(9)), GlobReason::TooMany);
    let only = View::new(&[] as &[&str], &["!a"]).unwrap_err();
    assert_eq!(only.reason, GlobReason::OnlyExceptions);
}

#[test]
fn a_case_that_would_be_judged_otherwise_is_doubtful() {
    let view = view(&[], &["**/.env", "**/*.PEM"]);
    let doubtful = |name: &str| view.is_doubtful(&view.start(), name.as_bytes());
    for name in [
        ".ENV",
        ".Env",
        "a.pem",
        "a.Pem",
        "ENV~1",
        ".env.",
        "caf\u{e9}",
    ] {
        assert!(doubtful(name), "{name}");
    }
    for name in [".env", "README.md", "a.PEM"] {
        assert!(!doubtful(name), "{name}");
    }
}

/// What a pattern means, as plainly as it can be said.
fn fits_name(pattern: &[char], name: &[char]) -> bool {
    match pattern {
        [] => name.is_empty(),
        ['*', rest @ ..] => (0..=name.len()).any(|taken| fits_name(rest, &name[taken..])),
        ['?', rest @ ..] => !name.is_empty() && fits_name(rest, &name[1..]),
        ['[', 'a', 'b', ']', rest @ ..] => {
            matches!(name, ['a' | 'b', ..]) && fits_name(rest, &name[1..])
        }
        [letter, rest @ ..] => name.first() == Some(letter) && fits_name(rest, &name[1..]),
    }
}

fn fits_path(glob: &[&str], path: &[&str]) -> bool {
    match glob {
        [] => path.is_empty(),
        ["**"] => !path.is_empty(),
        ["**", rest @ ..] => (0..=path.len()).any(|taken| fits_path(rest, &path[taken..])),
        [first, rest @ ..] => path.split_first().is_some_and(|(name, behind)| {
            let (first, name): (Vec<_>, Vec<_>) = (first.chars().collect(), name.chars().collect());
            fits_name(&first, &name) && fits_path(rest, behind)
        }),
    }
}

/// The last glob that matches a path or a directory above it decides.
fn model(globs: &[String], path: &[&str], shows: bool) -> bool {
    let unmatched = !shows || globs.iter().all(|glob| glob.starts_with('!'));
    let matches = |glob: &str| {
        let glob: Vec<&str> = glob.split('/').collect();
        (1..=path.len()).any(|end| fits_path(&glob, &path[..end]))
    };
    let mut decided = unmatched;
    for glob in globs {
        let plain = glob.trim_start_matches('!');
        if matches(plain) {
            decided = glob.starts_with('!') != shows;
        }
    }
    decided
}

const NAMES: [&str; 5] = ["a", "b", "ab", "c.md", ".env"];
const KINDS: [FileKind; 3] = [FileKind::File, FileKind::Directory, FileKind::Unknown];

fn globs() -> impl Strategy<Value = Vec<String>> {
    let piece = prop::sample::select(vec![
        "a", "b", "ab", "*", "**", "*.md", ".env*", "[ab]", "?", "a*", "*b*", "c*d", "*.m?", "?.md",
    ]);
    let glob = (any::<bool>(), prop::collection::vec(piece, 1..4));
    let glob = glob
        .prop_map(|(not, pieces)| format!("{}{}", if not { "!" } else { "" }, pieces.join("/")));
    prop::collection::vec(glob, 1..6)
}

fn paths() -> Vec<Vec<&'static str>> {
    let mut all: Vec<Vec<&str>> = vec![vec![]];
    for depth in 0..3 {
        let above: Vec<_> = all
            .iter()
            .filter(|path| path.len() == depth)
            .cloned()
            .collect();
        for path in above {
            all.extend(NAMES.map(|name| [path.clone(), vec![name]].concat()));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_view_judges_like_the_model(show in globs(), hide in globs()) {
        let Ok(Some(view)) = View::new(&show, &hide) else {
            return Ok(());
        };
        let all = paths();
        let exists = |path: &[&str]| model(&show, path, true) && model(&hide, path, false);
        for path in all.iter().filter(|path| !path.is_empty()) {
            let text = path.join("/");
            let shown = view.shows(text.as_bytes(), FileKind::File);
            prop_assert_eq!(shown, exists(path), "{} {:?} {:?}", text, &show, &hide);
        }
        for dir in all.iter().filter(|path| path.len() < 3 && !path.is_empty()) {
            let text = dir.join("/");
            let mut below = all.iter().filter(|path| path.len() > dir.len() && path.starts_with(dir));
            let all_below = below.clone().all(|path| exists(path));
            let any_below = below.any(|path| exists(path));
            if exists(dir) || any_below {
                prop_assert!(view.shows(text.as_bytes(), FileKind::Directory), "{} {:?} {:?}", text, &show, &hide);
            }
            if view.shows_all_below(text.as_bytes()) {
                prop_assert!(all_below, "{} {:?} {:?}", text, &show, &hide);
            }
            let standing = view.standing(text.as_bytes());
            let mut judge = view.entries_of(&standing);
            for (name, kind) in NAMES.into_iter().flat_map(|name| KINDS.map(|kind| (name, kind))) {
                let shown = view.shows(format!("{text}/{name}").as_bytes(), kind);
                prop_assert_eq!(judge.shows(name.as_bytes(), kind), shown, "{}/{} {:?} {:?}", text, name, &show, &hide);
            }
        }
    }

    #[test]
    fn no_text_makes_reading_a_glob_fail_badly(text in "[ab*?!{},\\[\\]/\\\\.^-]{0,12}") {
        if ViewGlob::parse(&text).is_ok() {
            let _ = View::new(&[text.as_str()], &[]).map(|view| view.map(|view| view.shows(b"a/b", FileKind::File)));
        }
    }
}
