//! HTTPS by certificate and key file.

use std::sync::Arc;

use testkit::{Setup, Transport, Tree, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::{list_roots, status};
use crate::harness::ToolSet;
use crate::workspace::Workspace;

/// A certificate for localhost and the files it is in.
pub(super) fn certified() -> (CertificateDer<'static>, Tree) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = Tree::new()
        .file("cert.pem", made.cert.pem())
        .file("key.pem", made.signing_key.serialize_pem());
    (made.cert.der().clone(), files)
}

pub(super) fn with_tls(tree: &Tree, files: &Tree) -> Setup {
    let tls = json!({"cert": files.join("cert.pem"), "key": files.join("key.pem")});
    Workspace::setup(tree).set("server.tls", tls)
}

async fn ask(
    address: std::net::SocketAddr,
    trusted: CertificateDer<'static>,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let body = list_roots().to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn speaks_https_and_takes_new_certificates_on_hangup() {
    let tree = Tree::new();
    let (first, files) = certified();
    let wire = with_tls(&tree, &files).wire(Transport::Http).await;
    let address = wire.http().address();
    let answer = ask(address, first.clone()).await.unwrap();
    assert_eq!(status(&answer), Some(200), "{answer}");
    assert!(answer.contains("workspace"), "{answer}");
    let plain = wire
        .http()
        .raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_ne!(status(&plain), Some(200), "{plain}");

    let (second, others) = certified();
    for file in ["cert.pem", "key.pem"] {
        std::fs::copy(others.join(file), files.join(file)).unwrap();
    }
    wire.reload();
    wire.logged(|line| {
        line["message"] == "the configuration, tokens and certificates were read again"
    })
    .await;
    assert!(
        ask(address, first).await.is_err(),
        "the old certificate is gone"
    );
    assert_eq!(status(&ask(address, second).await.unwrap()), Some(200));
}

#[tokio::test]
async fn keys_that_cannot_be_used_are_start_up_errors_that_show_nothing_of_them() {
    let tree = Tree::new();
    let (_, files) = certified();
    let (_, others) = certified();
    let key = std::fs::read_to_string(files.join("key.pem")).unwrap();
    std::fs::copy(others.join("key.pem"), files.join("key.pem")).unwrap();
    let ended = with_tls(&tree, &files).refuse(Transport::Http).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.join("\n").contains("server.tls"), "{ended:?}");
    std::fs::write(files.join("key.pem"), key.replace("PRIVATE", "SECRET")).unwrap();
    let ended = with_tls(&tree, &files).refuse(Transport::Http).await;
    let line = ended.stderr.join("\n");
    assert!(
        line.contains("server.tls.key") && line.contains("no private key"),
        "{line}"
    );
    let secret = key.lines().nth(1).unwrap();
    assert!(!line.contains(secret), "{line}");
    std::fs::write(files.join("cert.pem"), "none").unwrap();
    let ended = with_tls(&tree, &files).refuse(Transport::Http).await;
    assert!(
        ended.stderr.join("\n").contains("server.tls.cert"),
        "{ended:?}"
    );
}
