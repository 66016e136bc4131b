//! An issuer of access tokens on loopback: its keys, and tokens of every kind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use testkit::{Tree, Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring as ring_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The name of the issuer in its tokens.
pub(super) const ISSUER: &str = "https://login.example.org";
/// Where clients see the server.
pub(super) const SERVER: &str = "https://files.example.org";

/// Base64 as tokens have it.
pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.as_ref().chunks(3) {
        let number = three
            .iter()
            .fold(0u32, |all, byte| (all << 8) | u32::from(*byte));
        let number = number << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            text.push(LETTERS[(number >> (18 - 6 * place)) as usize & 63] as char);
        }
    }
    text
}

/// A key that tokens are signed with.
pub(super) struct SigningKey {
    id: String,
    pair: EcdsaKeyPair,
}

impl SigningKey {
    pub(super) fn new(id: &str) -> SigningKey {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        SigningKey {
            id: id.to_owned(),
            pair: EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("a key"),
        }
    }

    pub(super) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The key as an issuer tells it.
    pub(super) fn jwk(&self) -> Value {
        let point = self.public();
        let (x, y) = (base64(&point[1..33]), base64(&point[33..]));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": self.id, "x": x, "y": y})
    }

    pub(super) fn header(&self) -> Value {
        json!({"alg": "ES256", "kid": self.id, "typ": "at+jwt"})
    }

    /// A token with these claims.
    pub(super) fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    pub(super) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let random = SystemRandom::new();
        let signature = self.pair.sign(&random, message.as_bytes());
        format!("{message}.{}", base64(signature.expect("a signature")))
    }
}

/// What a signature is made of.
pub(super) fn message(header: &Value, claims: &Value) -> String {
    let (header, claims) = (header.to_string(), claims.to_string());
    format!("{}.{}", base64(header), base64(claims))
}

/// A value with one key changed.
pub(super) fn with(mut value: Value, key: &str, new: impl Into<Value>) -> Value {
    value[key] = new.into();
    value
}

pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.expect("a time").as_secs()
}

/// The claims of a good token.
pub(super) fn claims(subject: &str, scope: &str) -> Value {
    json!({
        "iss": ISSUER, "aud": SERVER, "sub": subject, "scope": scope,
        "iat": now(), "exp": now() + 600
    })
}

/// An issuer's endpoint for keys, which counts how often it is asked. `None` is one that fails.
pub(super) struct KeyEndpoint {
    pub(super) url: String,
    document: Arc<Mutex<Option<Value>>>,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl KeyEndpoint {
    pub(super) async fn start(keys: &[&SigningKey]) -> KeyEndpoint {
        KeyEndpoint::start_as(keys, None).await
    }

    /// An endpoint that speaks HTTPS with the certificate and key of these files.
    pub(super) async fn start_encrypted(keys: &[&SigningKey], files: &Tree) -> KeyEndpoint {
        let cert = CertificateDer::from_pem_file(files.join("cert.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(files.join("key.pem")).expect("a key");
        let config =
            ServerConfig::builder_with_provider(Arc::new(ring_provider::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|config| {
                    let config = config.with_no_client_auth();
                    config.with_single_cert(vec![cert], key)
                });
        let tls = TlsAcceptor::from(Arc::new(config.expect("a configuration")));
        KeyEndpoint::start_as(keys, Some(tls)).await
    }

    async fn start_as(keys: &[&SigningKey], tls: Option<TlsAcceptor>) -> KeyEndpoint {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let document = Arc::new(Mutex::new(None));
        let asked = Arc::new(AtomicUsize::new(0));
        let (told, count) = (Arc::clone(&document), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let document = told.lock().expect("a lock").clone();
                match &tls {
                    None => answer(stream, document).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, document).await;
                        }
                    }
                }
            }
        });
        let endpoint = KeyEndpoint {
            // A name: looking it up needs files that the locked process may still read.
            url: format!("{scheme}://localhost:{}/keys", address.port()),
            document,
            asked,
            task,
        };
        endpoint.rotate(keys);
        endpoint
    }

    /// Has these keys from now on; none at all is an issuer that fails.
    pub(super) fn rotate(&self, keys: &[&SigningKey]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
        let document = (!keys.is_empty()).then(|| json!({ "keys": keys }));
        *self.document.lock().expect("a lock") = document;
    }

    pub(super) fn times_asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for KeyEndpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, document: Option<Value>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte).await {
            Ok(1) => request.push(byte[0]),
            _ => return,
        }
    }
    let request = String::from_utf8_lossy(&request).to_lowercase();
    // Nothing of a client's goes with the request.
    assert!(!request.contains("authorization"), "{request}");
    let (status, body) = match document {
        Some(document) => ("200 OK", document.to_string()),
        None => ("500 Internal Server Error", "broken".to_owned()),
    };
    let length = body.len();
    let reply = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    let _ = stream.write_all(reply.as_bytes()).await;
    let _ = stream.shutdown().await;
}
