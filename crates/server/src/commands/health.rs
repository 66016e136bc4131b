//! `mcp-filesystem health`: asks a running server for its health, for container images without another HTTP client.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
};

use super::server_url::{Encryption, ServerUrl};
use crate::settings::Settings;

/// How long the server may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// The URL of a server's health check.
const HEALTH: &str = "/health";

/// The most bytes of an answer that are read.
const MAX_ANSWER: u64 = 4096;

/// Asks the server at `url`, or the one that these settings describe. Any status but 200 is an error.
pub(crate) fn run(url: Option<&str>, settings: &Settings) -> Result<()> {
    let target = match url {
        Some(url) => ServerUrl::parse(url, HEALTH)?,
        None => own_address(settings)?,
    };
    let answer = ask(&target).with_context(|| format!("{} does not answer", target.shown()))?;
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => bail!("{} answers {status:?}", target.shown()),
    }
}

/// Where a server with these settings is asked for its health.
fn own_address(settings: &Settings) -> Result<ServerUrl> {
    if settings.port == 0 {
        bail!("port 0 means any free port; give the server's URL");
    }
    // A server on every address also listens on loopback.
    let host = match &*settings.host {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    Ok(ServerUrl {
        host: host.to_owned(),
        port: settings.port,
        path: HEALTH.to_owned(),
        encryption: match settings.tls {
            Some(_) => Encryption::Tls,
            None => Encryption::None,
        },
    })
}

fn ask(target: &ServerUrl) -> Result<String> {
    let stream = connect(target)?;
    let question = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        target.path,
        target.authority()
    );
    match target.encryption {
        Encryption::None => exchange(stream, &question),
        Encryption::Tls => exchange(encrypted(stream, target)?, &question),
    }
}

fn connect(target: &ServerUrl) -> Result<TcpStream> {
    let addresses = (target.host.as_str(), target.port).to_socket_addrs()?;
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failure = Some(error),
        }
    }
    Err(failure
        .unwrap_or_else(|| io::ErrorKind::NotFound.into())
        .into())
}

fn exchange(mut stream: impl Read + Write, question: &str) -> Result<String> {
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    let read = stream.take(MAX_ANSWER).read_to_end(&mut answer);
    // A connection may break once the answer is there.
    if answer.is_empty() {
        read?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn encrypted(
    stream: TcpStream,
    target: &ServerUrl,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from(target.host.clone())?;
    let connection = ClientConnection::new(Arc::new(config), name)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Accepts every certificate. Security: certificates seldom name the loopback address, no secret is sent, and the
/// answer only says whether the server is healthy.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Partial;

    fn at(host: &str, port: u16) -> Settings {
        Partial {
            host: host.parse().ok(),
            port: Some(port),
            ..Partial::default()
        }
        .complete()
    }

    #[test]
    fn a_server_on_every_address_is_asked_on_loopback() {
        let shown = |host| own_address(&at(host, 8091)).unwrap().shown();
        assert_eq!(shown("0.0.0.0"), "http://127.0.0.1:8091/health");
        assert_eq!(shown("::"), "http://[::1]:8091/health");
        assert_eq!(shown("192.0.2.1"), "http://192.0.2.1:8091/health");
        assert!(own_address(&at("0.0.0.0", 0)).is_err());
    }
}
