//! The port HTTP listens on. It is opened before the process confines itself, because looking up a host name may need
//! files outside every root.

use std::net::TcpListener;

use anyhow::{Context, Result};

use crate::settings::Settings;

/// Opens the port, ready for the runtime.
pub(crate) fn bind(settings: &Settings) -> Result<TcpListener> {
    let bound = TcpListener::bind((&*settings.host, settings.port));
    let listener = bound.with_context(|| {
        format!(
            "cannot listen on {}",
            address(&settings.host, settings.port)
        )
    })?;
    listener
        .set_nonblocking(true)
        .context("cannot use the port")?;
    Ok(listener)
}

/// The address as a URL writes it.
pub(crate) fn address(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Partial;

    fn at(host: &str, port: u16) -> Settings {
        let host = host.parse().ok();
        Partial {
            host,
            port: Some(port),
            ..Partial::default()
        }
        .complete()
    }

    #[test]
    fn port_0_is_any_that_is_free_and_a_taken_one_is_named() {
        let listener = bind(&at("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = bind(&at("127.0.0.1", port)).unwrap_err();
        let message = format!("{error:#}");
        assert!(
            message.starts_with(&format!("cannot listen on 127.0.0.1:{port}: ")),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn addresses_read_as_in_a_url() {
        assert_eq!(address("::1", 80), "[::1]:80");
        assert_eq!(address("localhost", 80), "localhost:80");
    }
}
