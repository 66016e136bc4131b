//! Keeps the issuer's keys, and fetches them at the start, every hour, and when a token names an unknown key.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use jsonwebtoken::Header;
use tokio::sync::{Mutex, SetOnce};
use tokio::time::Instant;

use super::key_set::KeySet;
use crate::operator_files::{self, reason};

/// How often tokens with unknown keys may cause a fetch.
const FETCH_AGAIN: Duration = Duration::from_secs(60);
/// How long a key that the issuer has withdrawn may still be accepted.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// Where the keys come from.
pub(super) enum KeySource {
    /// A file, read at the start and on SIGHUP.
    File(PathBuf),
    /// The issuer's address.
    Issuer(Box<dyn FetchKeys>),
}

/// Fetches the issuer's JWK Set.
pub(super) trait FetchKeys: Send + Sync {
    /// The document, or why there is none.
    fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>>;
}

/// The keys in force.
pub(super) struct KeyStore {
    source: KeySource,
    current: RwLock<Arc<KeySet>>,
    /// Set once the issuer was asked for the first time. Earlier requests wait for that.
    asked_first: SetOnce<()>,
    /// When a token last caused a fetch. Held while one runs: the others wait for it.
    last_asked: Mutex<Option<Instant>>,
}

impl KeyStore {
    /// Opens the store. A file is read now, and a mistake in it is an error of the start; an issuer is asked later.
    pub(super) fn open(source: KeySource) -> Result<KeyStore> {
        let keys = match &source {
            KeySource::File(path) => read_file(path)?,
            KeySource::Issuer(_) => KeySet::default(),
        };
        Ok(KeyStore {
            source,
            current: RwLock::new(Arc::new(keys)),
            asked_first: SetOnce::new(),
            last_asked: Mutex::new(None),
        })
    }

    /// Keys that include the one a token names, or else the current keys.
    pub(super) async fn keys_for(&self, header: &Header) -> Arc<KeySet> {
        let keys = self.current();
        if keys.find(header).is_some() {
            return keys;
        }
        let KeySource::Issuer(issuer) = &self.source else {
            return keys;
        };
        self.asked_first.wait().await;
        let mut last_asked = self.last_asked.lock().await;
        let keys = self.current();
        let is_soon = last_asked.is_some_and(|last| last.elapsed() < FETCH_AGAIN);
        // Another request may have fetched the key meanwhile.
        if is_soon || keys.find(header).is_some() {
            return keys;
        }
        *last_asked = Some(Instant::now());
        self.fetch(issuer.as_ref()).await;
        self.current()
    }

    /// Fetches the keys now and every hour, until then every minute. Never ends.
    pub(super) async fn keep_fresh(&self) {
        let KeySource::Issuer(issuer) = &self.source else {
            return;
        };
        loop {
            let fetched = self.fetch(issuer.as_ref()).await;
            // Only the first time matters.
            let _ = self.asked_first.set(());
            tokio::time::sleep(if fetched { FRESH } else { FETCH_AGAIN }).await;
        }
    }

    /// Reads a file of keys again; the old keys stay in force.
    pub(super) fn read_again(&self) -> Result<Option<KeySet>> {
        match &self.source {
            KeySource::File(path) => read_file(path).map(Some),
            KeySource::Issuer(_) => Ok(None),
        }
    }

    async fn fetch(&self, issuer: &dyn FetchKeys) -> bool {
        let fetched = issuer.fetch().await;
        let keys = fetched.and_then(|text| KeySet::parse(&text).map_err(str::to_owned));
        match keys {
            Ok(keys) => {
                tracing::debug!(keys = keys.count(), "the issuer's keys were fetched");
                self.replace(keys);
                true
            }
            Err(reason) => {
                let kept = self.current().count();
                tracing::warn!(
                    reason,
                    kept,
                    "the issuer's keys could not be fetched; those that are there stay in force"
                );
                false
            }
        }
    }

    fn current(&self) -> Arc<KeySet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn replace(&self, keys: KeySet) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }
}

fn read_file(path: &PathBuf) -> Result<KeySet> {
    let read = operator_files::read_bytes(path);
    let (bytes, _) = read
        .map_err(|error| anyhow!("{path:?}: {}", reason(&error)))
        .context(JWKS_FILE)?;
    let keys = KeySet::parse(&bytes).map_err(|fault| anyhow!("{path:?}: {fault}"));
    keys.context(JWKS_FILE)
}

const JWKS_FILE: &str = "auth.oauth.jwks_file";

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::Algorithm;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// An issuer with one key, whose id can be changed; `None` is an issuer that cannot be reached.
    #[derive(Clone, Default)]
    struct Issuer {
        key: Arc<RwLock<Option<&'static str>>>,
        fetches: Arc<AtomicUsize>,
    }

    impl Issuer {
        fn rotate(&self, key: Option<&'static str>) {
            *self.key.write().unwrap() = key;
        }

        fn fetches(&self) -> usize {
            self.fetches.load(Ordering::Relaxed)
        }
    }

    impl FetchKeys for Issuer {
        fn fetch(&self) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, String>> + Send + '_>> {
            self.fetches.fetch_add(1, Ordering::Relaxed);
            let key = *self.key.read().unwrap();
            let document = key.map(|id| {
                let key = json!({"kty": "EC", "crv": "P-256", "kid": id, "x": "AA", "y": "AA"});
                json!({"keys": [key]}).to_string().into_bytes()
            });
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                document.ok_or_else(|| "it cannot be reached".to_owned())
            })
        }
    }

    fn store(issuer: &Issuer) -> KeyStore {
        let store = KeyStore::open(KeySource::Issuer(Box::new(issuer.clone()))).unwrap();
        store.asked_first.set(()).unwrap();
        store
    }

    async fn has(store: &KeyStore, id: &str) -> bool {
        let header = Header {
            kid: Some(id.to_owned()),
            ..Header::new(Algorithm::ES256)
        };
        store.keys_for(&header).await.find(&header).is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_key_causes_one_fetch_a_minute() {
        let issuer = Issuer::default();
        issuer.rotate(Some("a"));
        let store = store(&issuer);
        assert!(has(&store, "a").await);
        issuer.rotate(Some("b"));
        for _ in 0..100 {
            assert!(!has(&store, "b").await);
        }
        assert_eq!(issuer.fetches(), 1);
        tokio::time::advance(FETCH_AGAIN).await;
        assert!(has(&store, "b").await);
        assert!(!has(&store, "a").await, "it was withdrawn");
        assert_eq!(issuer.fetches(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fetch_that_fails_keeps_the_old_keys() {
        let issuer = Issuer::default();
        issuer.rotate(Some("a"));
        let store = store(&issuer);
        assert!(has(&store, "a").await);
        issuer.rotate(None);
        tokio::time::advance(FETCH_AGAIN).await;
        assert!(!has(&store, "b").await);
        assert!(has(&store, "a").await);
        assert_eq!(issuer.fetches(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_at_once_share_a_fetch() {
        let issuer = Issuer::default();
        issuer.rotate(Some("a"));
        let store = store(&issuer);
        let (one, two, three) = tokio::join!(has(&store, "a"), has(&store, "a"), has(&store, "a"));
        assert!(one && two && three);
        assert_eq!(issuer.fetches(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_are_fetched_at_the_start_every_hour_and_after_a_failure_every_minute() {
        let issuer = Issuer::default();
        let store = KeyStore::open(KeySource::Issuer(Box::new(issuer.clone())));
        let store = Arc::new(store.unwrap());
        let own = Arc::clone(&store);
        let task = tokio::spawn(async move { own.keep_fresh().await });
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(issuer.fetches(), 1);
        issuer.rotate(Some("a"));
        tokio::time::sleep(FETCH_AGAIN).await;
        assert_eq!(issuer.fetches(), 2);
        assert!(has(&store, "a").await);
        issuer.rotate(Some("b"));
        tokio::time::sleep(FRESH).await;
        assert_eq!(issuer.fetches(), 3);
        assert!(has(&store, "b").await && !has(&store, "a").await);
        task.abort();
    }
}
