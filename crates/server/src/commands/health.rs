//! `mcp-filesystem health`: asks a running server for its health, for container images without another HTTP client.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hyper::Uri;
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

use crate::http::listener;
use crate::settings::Settings;

/// How long the server may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// The most bytes of an answer that are read.
const MAX_ANSWER: u64 = 4096;

/// Asks the server at `url`, or the one that these settings start. Any status but 200 is an error.
pub(crate) fn run(url: Option<&str>, settings: &Settings) -> Result<()> {
    let target = match url {
        Some(url) => HealthTarget::parse(url)?,
        None => HealthTarget::of(settings)?,
    };
    let answer = ask(&target).with_context(|| format!("{} does not answer", target.shown()))?;
    let status = answer.lines().next().unwrap_or_default();
    match status.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => bail!("{} answers {status:?}", target.shown()),
    }
}

/// Where to ask, and how.
#[derive(Debug, PartialEq, Eq)]
struct HealthTarget {
    host: String,
    port: u16,
    path: String,
    encryption: Encryption,
}

#[derive(Debug, PartialEq, Eq)]
enum Encryption {
    None,
    Tls,
}

impl HealthTarget {
    fn parse(url: &str) -> Result<HealthTarget> {
        let uri: Uri = url.parse().with_context(|| format!("{url:?} is no URL"))?;
        let encryption = match uri.scheme_str() {
            Some("http") => Encryption::None,
            Some("https") => Encryption::Tls,
            _ => bail!("{url:?}: expected http://HOST:PORT or https://HOST:PORT"),
        };
        let default = match encryption {
            Encryption::None => 80,
            Encryption::Tls => 443,
        };
        let path = uri.path();
        Ok(HealthTarget {
            host: bare(uri.host().unwrap_or_default()).to_owned(),
            port: uri.port_u16().unwrap_or(default),
            path: if path == "/" { "/health" } else { path }.to_owned(),
            encryption,
        })
    }

    fn of(settings: &Settings) -> Result<HealthTarget> {
        if settings.port == 0 {
            bail!("the port is any that is free: give the server's URL");
        }
        // A server on every address also listens on loopback.
        let host = match &*settings.host {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        Ok(HealthTarget {
            host: host.to_owned(),
            port: settings.port,
            path: "/health".to_owned(),
            encryption: match settings.tls {
                Some(_) => Encryption::Tls,
                None => Encryption::None,
            },
        })
    }

    /// The host and port as a URL writes them.
    fn authority(&self) -> String {
        listener::address(&self.host, self.port)
    }

    fn shown(&self) -> String {
        let scheme = match self.encryption {
            Encryption::None => "http",
            Encryption::Tls => "https",
        };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }
}

/// An address without the brackets a URL puts around it.
fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn ask(target: &HealthTarget) -> Result<String> {
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

fn connect(target: &HealthTarget) -> Result<TcpStream> {
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
    target: &HealthTarget,
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
        let shown = |host| HealthTarget::of(&at(host, 8091)).unwrap().shown();
        assert_eq!(shown("0.0.0.0"), "http://127.0.0.1:8091/health");
        assert_eq!(shown("::"), "http://[::1]:8091/health");
        assert_eq!(shown("192.0.2.1"), "http://192.0.2.1:8091/health");
        assert!(HealthTarget::of(&at("0.0.0.0", 0)).is_err());
    }

    #[test]
    fn a_url_says_where_to_ask() {
        let shown = |url| HealthTarget::parse(url).unwrap().shown();
        assert_eq!(shown("http://a:1"), "http://a:1/health");
        assert_eq!(shown("https://[::1]"), "https://[::1]:443/health");
        assert_eq!(shown("http://a/b/health"), "http://a:80/b/health");
        for url in ["a:1", "ftp://a", "/health", "http://a b"] {
            assert!(HealthTarget::parse(url).is_err(), "{url}");
        }
    }
}
