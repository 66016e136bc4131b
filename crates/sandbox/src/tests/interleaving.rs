//! An attacker makes each possible move before every single system call, and undoes it one to three calls
//! later or never: whatever the move and the moment, nothing outside is read or changed.
//!
//! The normal run takes a selection; with `SANDBOX_EXHAUSTIVE` set, nothing is left out.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::scenes::{
    DEEP, EXEMPT, GOING_UP, Move, Operation, SECRET, SECRET_NAME, SHALLOW, Scene, Seen, Shape,
};
use super::support::fresh_dir;
use crate::planted_fault::{self, PlantedFault};
use crate::syscall::hook;
use crate::{Error, Resolver, Root};

/// Of how many runs the normal test makes one; a prime, so that it meets every kind of run.
const SELECTION: usize = 211;
const DEEP_SELECTION: usize = 31;
/// After how many calls a move is undone.
const UNDONE: [Option<usize>; 4] = [Some(1), Some(2), Some(3), None];

/// A move before a certain call.
#[derive(Debug, Clone, Copy)]
struct Attack {
    what: Move,
    before_call: usize,
    undone_after: Option<usize>,
}

/// What a run came to.
struct Outcome {
    result: Result<(), Error>,
    calls: usize,
    escape: Option<String>,
}

/// What is outside: names and inodes, and of files when they last changed.
type Outside = BTreeMap<PathBuf, (u64, Option<(i64, i64)>)>;

struct Stage<'a> {
    scene: &'a Scene,
    resolver: Resolver,
    fault: Option<PlantedFault>,
    base: PathBuf,
    before: Outside,
}

impl Stage<'_> {
    fn run(&self, operation: Operation, shape: &Shape, attack: Option<Attack>) -> Outcome {
        (self.scene.build)(&self.base);
        let root = Root::open_with(&self.base.join("inside"), self.resolver).unwrap();
        let calls = Rc::new(Cell::new(0));
        let action = attacker(self.base.clone(), attack, Rc::clone(&calls));
        let mut seen = Seen::default();
        let result = planted_fault::with(self.fault, || {
            hook::with(action, || operation(&root, shape, &mut seen))
        });
        let escape = escape(&seen, &self.before, &outside(&self.base));
        self.clear();
        Outcome {
            result,
            calls: calls.get(),
            escape,
        }
    }

    /// Removes what a run worked on, wherever the attacker left it.
    fn clear(&self) {
        fs::remove_dir_all(self.base.join("inside")).unwrap();
        for path in EXEMPT.map(|name| self.base.join("elsewhere").join(name)) {
            let _ = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

/// Counts calls, and makes and undoes the move in its time.
fn attacker(
    base: PathBuf,
    attack: Option<Attack>,
    calls: Rc<Cell<usize>>,
) -> impl FnMut(&'static str) + 'static {
    move |_| {
        let now = calls.replace(calls.get() + 1);
        let Some(attack) = attack else { return };
        if now == attack.before_call {
            attack.what.make(&base);
        } else if attack
            .undone_after
            .is_some_and(|after| now == attack.before_call + after)
        {
            attack.what.undo(&base);
        }
    }
}

fn outside(base: &Path) -> Outside {
    let mut found = Outside::new();
    let mut pending = vec![base.join("outside"), base.join("elsewhere")];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if EXEMPT.iter().any(|exempt| entry.file_name() == *exempt) {
                continue;
            }
            let metadata = entry.metadata().unwrap();
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            if metadata.is_dir() {
                pending.push(entry.path());
            }
            let changed = (!metadata.is_dir()).then_some(changed);
            found.insert(entry.path(), (metadata.ino(), changed));
        }
    }
    found
}

/// Says what left the root, or came from outside it.
fn escape(seen: &Seen, before: &Outside, after: &Outside) -> Option<String> {
    let secrets: BTreeSet<u64> = before.values().map(|(inode, _)| *inode).collect();
    if before != after {
        return Some("outside was changed".to_owned());
    }
    if seen
        .bytes
        .windows(SECRET.len())
        .any(|window| window == SECRET)
    {
        return Some("outside was read".to_owned());
    }
    if seen.names.iter().any(|name| name == SECRET_NAME) {
        return Some("outside was listed".to_owned());
    }
    let told = seen.inodes.iter().find(|inode| secrets.contains(inode));
    told.map(|inode| format!("outside's inode {inode} was told"))
}

/// Plays a scene in every way, or in one of `selection` ways, until something escapes.
fn first_escape(
    scene: &Scene,
    resolver: Resolver,
    fault: Option<PlantedFault>,
    selection: usize,
) -> Result<usize, String> {
    let temp = fresh_dir();
    let base = fs::canonicalize(temp.path()).unwrap();
    (scene.build_outside)(&base);
    let stage = Stage {
        scene,
        resolver,
        fault,
        before: outside(&base),
        base,
    };
    let (mut number, mut runs) = (0, 0);
    for (name, operation) in scene.operations {
        for shape in scene.shapes {
            let peace = stage.run(*operation, shape, None);
            peace.found(name, shape, None)?;
            if fault.is_none() {
                peace
                    .result
                    .unwrap_or_else(|error| panic!("{name} {shape:?}: {error}"));
            }
            for attack in attacks(scene, peace.calls) {
                number += 1;
                if number % selection == 0 {
                    runs += 1;
                    let outcome = stage.run(*operation, shape, Some(attack));
                    outcome.found(name, shape, Some(attack))?;
                }
            }
        }
    }
    Ok(runs)
}

impl Outcome {
    fn found(&self, name: &str, shape: &Shape, attack: Option<Attack>) -> Result<(), String> {
        match &self.escape {
            None => Ok(()),
            Some(escape) => Err(format!(
                "{escape}: {name} {shape:?} {attack:?} {:?}",
                self.result
            )),
        }
    }
}

fn attacks(scene: &Scene, calls: usize) -> impl Iterator<Item = Attack> {
    scene.moves.iter().flat_map(move |&what| {
        (0..calls).flat_map(move |before_call| {
            UNDONE.map(|undone_after| Attack {
                what,
                before_call,
                undone_after,
            })
        })
    })
}

fn holds(resolver: Resolver) {
    let exhaustive = std::env::var_os("SANDBOX_EXHAUSTIVE").is_some();
    let of = |selection| if exhaustive { 1 } else { selection };
    let shallow = first_escape(&SHALLOW, resolver, None, of(SELECTION)).unwrap();
    let deep = first_escape(&DEEP, resolver, None, of(DEEP_SELECTION)).unwrap();
    // Kept with the test's output, which `--no-capture` shows.
    let line = format!("{resolver:?}: {} attacks, no escape\n", shallow + deep);
    std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    assert!(
        shallow > 300 && deep > 20,
        "{shallow} and {deep} attacks are too few"
    );
}

#[test]
fn no_move_at_any_moment_leads_out() {
    holds(Resolver::Auto);
}

#[test]
fn no_move_at_any_moment_leads_out_of_the_walk() {
    holds(Resolver::WalkOnly);
}

#[test]
fn no_move_at_any_moment_leads_out_of_the_walk_without_proc() {
    holds(Resolver::WalkWithoutProc);
}

/// The test is worth something only if it finds what it is there to find.
fn is_found(fault: PlantedFault, scene: &Scene, resolver: Resolver) {
    let found = first_escape(scene, resolver, Some(fault), 1);
    assert!(
        found.is_err(),
        "{fault:?} was not found in {found:?} attacks"
    );
}

#[test]
fn following_links_is_found() {
    is_found(PlantedFault::FollowLinks, &SHALLOW, Resolver::WalkOnly);
}

#[test]
fn opening_content_by_name_is_found() {
    is_found(PlantedFault::ReopenByName, &SHALLOW, Resolver::Auto);
}

#[test]
fn openat2_without_flags_is_found() {
    is_found(PlantedFault::NoResolveFlags, &SHALLOW, Resolver::Auto);
}

#[test]
fn going_up_by_a_string_is_found() {
    is_found(PlantedFault::RewalkByString, &GOING_UP, Resolver::WalkOnly);
}

#[test]
fn going_up_wherever_the_directory_is_now_is_found() {
    is_found(PlantedFault::KernelParent, &GOING_UP, Resolver::WalkOnly);
}

#[test]
fn going_up_a_tree_without_a_look_is_found() {
    is_found(PlantedFault::UncheckedAbove, &DEEP, Resolver::Auto);
}
