use super::*;
use crate::root::Root;

fn ledger(quota: Quota) -> (tempfile::TempDir, Arc<Ledger>) {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join("dir")).unwrap();
    std::fs::write(temp.path().join("dir/file"), "12345").unwrap();
    let top = syscall::open_root_unchecked(temp.path()).unwrap();
    (temp, Arc::new(Ledger::new(quota, top)))
}

fn bytes(bytes: u64) -> Amount {
    Amount { bytes, files: 0 }
}

#[test]
fn what_is_there_counts_and_reservations_do() {
    let (_temp, ledger) = ledger(Quota {
        max_bytes: Some(10),
        max_files: Some(3),
    });
    let first = ledger.reserve(bytes(4), "a").unwrap();
    let refused = ledger.reserve(bytes(2), "b").unwrap_err();
    assert!(
        matches!(
            refused,
            Error::OverQuota {
                limit: QuotaLimit::Bytes,
                most: 10,
                used: 9,
                needed: 2,
                ..
            }
        ),
        "{refused:?}"
    );
    drop(first);
    ledger.reserve(bytes(5), "b").unwrap().settle(bytes(5));
    assert!(ledger.reserve(bytes(1), "c").is_err());
    ledger
        .reserve(Amount::ENTRY, "d")
        .unwrap()
        .settle(Amount::ENTRY);
    let refused = ledger.reserve(Amount::ENTRY, "e").unwrap_err();
    assert!(matches!(
        refused,
        Error::OverQuota {
            limit: QuotaLimit::Files,
            ..
        }
    ));
}

#[test]
fn what_a_call_is_writing_is_not_counted_twice() {
    let (temp, ledger) = ledger(Quota {
        max_bytes: Some(10),
        max_files: Some(3),
    });
    // As on a file system without unnamed files.
    let own = leftovers::temporary_name().unwrap();
    let own = String::from_utf8(own.as_bytes().to_vec()).unwrap();
    std::fs::write(temp.path().join(&own), "12345").unwrap();
    let new = Amount { bytes: 5, files: 1 };
    let room = ledger.reserve(new, "a").unwrap();
    let none = Amount::default;
    let put = ledger.exchange("a", new, Some(room), &none, || Ok(()));
    put.unwrap().unwrap();
    // One that a killed process left behind does count.
    let left = own.replacen(&format!("-{}-", std::process::id()), "-2147483646-", 1);
    assert_ne!(left, own);
    std::fs::remove_file(temp.path().join(&own)).unwrap();
    std::fs::write(temp.path().join(left), "1").unwrap();
    ledger.balance().unwrap();
    assert_eq!(
        ledger.lock_or_guess(Waits::Shortly).used,
        Amount { bytes: 6, files: 3 }
    );
}

#[test]
fn getting_smaller_is_always_allowed() {
    let (_temp, ledger) = ledger(Quota {
        max_bytes: Some(3),
        max_files: None,
    });
    let change = |new, old: u64| {
        ledger
            .exchange("a", bytes(new), None, &|| bytes(old), || Ok(()))
            .map(drop)
    };
    assert!(change(4, 4).is_ok() && change(3, 4).is_ok());
    assert!(change(5, 4).is_err());
    assert_eq!(ledger.lock_or_guess(Waits::Shortly).used.bytes, 4);
}

#[test]
fn a_walk_finds_what_others_did() {
    let (temp, ledger) = ledger(Quota {
        max_bytes: Some(10),
        max_files: None,
    });
    assert!(ledger.reserve(bytes(6), "a").is_err());
    std::fs::remove_file(temp.path().join("dir/file")).unwrap();
    ledger.lock_or_guess(Waits::Shortly).walked =
        Some((Instant::now() - AFTER_REFUSAL * 2, Duration::ZERO));
    assert!(ledger.reserve(bytes(6), "a").is_ok());
}

#[test]
fn a_directory_that_was_opened_again_is_counted_anew() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("root");
    let fill = |bytes: usize| {
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), vec![0; bytes]).unwrap();
    };
    let open = |path: &std::path::Path| Root::open(path)?.with_quota(Quota::default());
    fill(5);
    let reopened = path.clone();
    let reopen = move || open(&reopened).ok();
    let live = LiveRoot::new(Arc::new(open(&path).unwrap()), Some(Box::new(reopen)));
    live.count_if_due();
    let used = || {
        live.ledger()
            .unwrap()
            .lock_or_guess(Waits::Shortly)
            .used
            .files
    };
    assert_eq!(used(), 1);
    std::fs::rename(&path, temp.path().join("old")).unwrap();
    fill(7);
    std::fs::create_dir(path.join("dir")).unwrap();
    live.check().unwrap();
    assert!(
        live.ledger()
            .unwrap()
            .lock_or_guess(Waits::Shortly)
            .walked
            .is_none()
    );
    live.count_if_due();
    assert_eq!(used(), 2);
}

#[test]
fn what_comes_during_a_walk_is_not_forgotten() {
    let (_temp, ledger) = ledger(Quota::default());
    ledger.lock_or_guess(Waits::Shortly).add(bytes(7));
    ledger
        .lock_or_guess(Waits::Shortly)
        .exchange(bytes(7), bytes(2));
    assert_eq!(ledger.lock_or_guess(Waits::Shortly).added, bytes(7));
    assert_eq!(ledger.lock_or_guess(Waits::Shortly).used, bytes(2));
}

#[test]
fn replicas_share_one_account() {
    let (temp, _) = ledger(Quota::default());
    let state = tempfile::tempdir().unwrap();
    let replica = || {
        let cluster = crate::Cluster::open(state.path()).unwrap();
        let top = syscall::open_root_unchecked(temp.path()).unwrap();
        let quota = Quota {
            max_bytes: Some(10),
            max_files: None,
        };
        let account = SharedAccount::new(cluster, "main");
        Arc::new(Ledger::shared(quota, top, account))
    };
    let (one, other) = (replica(), replica());
    let room = one.reserve(bytes(4), "a").unwrap();
    assert!(
        other.reserve(bytes(2), "b").is_err(),
        "5 are there, 4 reserved"
    );
    room.settle(bytes(3));
    assert_eq!(
        other.lock_or_guess(Waits::Shortly).used,
        bytes(8).plus(Amount { bytes: 0, files: 2 })
    );
    let exchanged = other.exchange("c", bytes(1), None, &|| bytes(0), || Ok(()));
    exchanged.unwrap().unwrap();
    assert_eq!(one.lock_or_guess(Waits::Shortly).used.bytes, 9);
    // What a replica that is gone had reserved is free again once somebody counts.
    let mut files = std::fs::read_dir(state.path()).unwrap().flatten();
    let record = files.find(|file| file.file_name().to_string_lossy().starts_with("quota-"));
    let record = record.unwrap().path();
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, format!("{text}replica-dead 1 0\n")).unwrap();
    assert!(other.reserve(bytes(1), "e").is_err());
    std::fs::write(temp.path().join("dir/file"), "123456789").unwrap();
    other.balance().unwrap();
    drop(other.reserve(bytes(1), "e").unwrap());
}

/// Changes would go uncounted, so none is made; what is used is told nevertheless.
#[test]
fn without_the_account_of_the_replicas_nothing_is_changed() {
    let (temp, _) = ledger(Quota::default());
    let state = tempfile::tempdir().unwrap();
    let cluster = crate::Cluster::open(state.path()).unwrap();
    let top = syscall::open_root_unchecked(temp.path()).unwrap();
    let account = SharedAccount::new(cluster, "main");
    let ledger = Arc::new(Ledger::shared(Quota::default(), top, account));
    drop(ledger.reserve(bytes(1), "a").unwrap());
    let used = ledger.usage().used.unwrap();
    let mut files = std::fs::read_dir(state.path()).unwrap().flatten();
    let record = files.find(|file| file.file_name().to_string_lossy().starts_with("quota-"));
    let record = record.unwrap().path();

    let held = std::fs::File::open(&record).unwrap();
    held.lock().unwrap();
    let start = Instant::now();
    let given_up = move || start.elapsed() > Duration::from_millis(100);
    let refused = crate::while_wanted(given_up, || ledger.reserve(bytes(1), "a"));
    assert!(matches!(refused, Err(Error::Stopped)), "{refused:?}");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(ledger.usage().used, Some(used));
    drop(held);

    std::fs::remove_file(&record).unwrap();
    std::fs::create_dir(&record).unwrap();
    let mut was_changed = false;
    let changed = ledger.exchange("a", bytes(1), None, &|| bytes(0), || {
        was_changed = true;
        Ok(())
    });
    assert!(matches!(changed, Err(Error::Io { .. })), "{changed:?}");
    let removed = ledger.take_away(&|| bytes(1), || {
        was_changed = true;
        Ok(())
    });
    assert_eq!(removed, Err(Errno::NOLCK));
    assert!(!was_changed);
    assert_eq!(ledger.usage().used, Some(used));
}
