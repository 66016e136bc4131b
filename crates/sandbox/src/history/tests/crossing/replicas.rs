//! Moves between two roots by a replica that is killed: another that runs on settles both roots, and a third takes it back.

use super::*;
use crate::Cluster;

const REPLICA_CHILD: &str = "HISTORY_CROSSING_REPLICA";

/// Both roots as one replica has them open.
struct Replica {
    cluster: Arc<Cluster>,
    roots: [Root; 2],
}

impl Replica {
    fn open(top: &Path) -> Replica {
        let cluster = Cluster::open(&top.join("state")).unwrap();
        let roots = ["one", "two"].map(|name| {
            let root = Root::open(&top.join(name)).unwrap();
            let root = root.with_cluster(Arc::clone(&cluster), name).unwrap();
            root.with_history(settings()).unwrap()
        });
        Replica { cluster, roots }
    }

    /// What every replica does from time to time, in this order of the roots.
    fn heed_the_dead(&self, order: [usize; 2]) {
        let dead = self.cluster.dead();
        assert_eq!(dead.len(), 1);
        for root in order.map(|index| &self.roots[index]) {
            let recovered = root.history().unwrap().recover(root);
            assert_eq!(recovered.left, Vec::<String>::new());
            root.sweep_leftovers_of(&dead, &|| false).unwrap();
        }
        dead.into_iter().for_each(|one| self.cluster.forget(one));
    }
}

/// The child of the test below.
#[test]
fn replica_that_is_killed_between_roots() {
    let Ok(order) = std::env::var(REPLICA_CHILD) else {
        return;
    };
    let words: Vec<&str> = order.split('|').collect();
    let replica = Replica::open(Path::new(words[3]));
    let (at, mut count): (usize, usize) = (words[2].parse().unwrap(), 0);
    let kill = move |_: &str| {
        count += 1;
        if count == at {
            std::process::abort();
        }
    };
    syscall::hook::with(kill, || {
        cross(&replica.roots, (words[0], words[1])).unwrap();
    });
}

/// Tells whether a replica that moves something was killed at its system call `at`.
fn kill_one(both: &TwoRoots, (from, to): (&str, &str), at: usize) -> bool {
    let order = format!("{from}|{to}|{at}|{}", both.temp.path().display());
    let child = "history::tests::crossing::replicas::replica_that_is_killed_between_roots";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child])
        .env(REPLICA_CHILD, order)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&child.stdout).contains("running 1 test"));
    !child.status.success()
}

#[test]
fn a_move_of_a_killed_replica_is_settled_by_one_and_undone_from_another() {
    let step = match std::env::var_os("SANDBOX_EXHAUSTIVE") {
        Some(_) => 1,
        None => 7,
    };
    for what in MOVES {
        let (mut were_made, mut kills) = (0, 0);
        for at in (1..).step_by(step) {
            let both = TwoRoots::new();
            let (one, other) = (
                Replica::open(both.temp.path()),
                Replica::open(both.temp.path()),
            );
            for root in &other.roots {
                root.history().unwrap().store().unwrap();
            }
            let before = without_dirs(both.snapshots());
            if !kill_one(&both, what, at) {
                break;
            }
            one.heed_the_dead(if kills % 2 == 0 { [0, 1] } else { [1, 0] });
            kills += 1;
            let made = other.roots.each_ref().map(last_made);
            let numbers = made.map(|made| made.map(|made| made.number));
            assert_eq!(numbers[0], numbers[1], "{what:?} at {at}");
            let found = without_dirs(both.snapshots());
            assert_eq!(found != before, numbers[0].is_some(), "{what:?} at {at}");
            if let [Some(number), _] = numbers {
                uncross([&other.roots[0], &other.roots[1]], number).unwrap();
                assert_eq!(without_dirs(both.snapshots()), before, "{what:?} at {at}");
                were_made += 1;
            }
            assert!(one.cluster.dead().is_empty());
        }
        assert!(kills * step > 20, "{what:?}: {kills} kills");
        assert!(kills > were_made, "{what:?}: never taken back");
    }
}
