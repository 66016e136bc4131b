//! A client's connection over HTTP, and what clients send.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

/// One kept-alive connection.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    body: Vec<u8>,
    /// The session that a reply named.
    session: Option<String>,
}

/// What the head of a reply says.
#[derive(Default)]
struct Head {
    status: String,
    length: usize,
    is_chunked: bool,
}

impl Connection {
    /// Connects as soon as somebody listens.
    pub(crate) fn open(address: &str) -> Result<Connection> {
        let begun = Instant::now();
        loop {
            match TcpStream::connect(address) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Connection {
                        stream: BufReader::new(stream),
                        body: Vec::new(),
                        session: None,
                    });
                }
                Err(error) if begun.elapsed() > Duration::from_secs(60) => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Begins a session; the header that names it.
    pub(crate) fn begin_session(&mut self, address: &str) -> Result<String> {
        self.exchange(&post(address, &greeting(), &[]))?;
        let session = self.session.as_ref().context("no session")?;
        Ok(format!("Mcp-Session-Id: {session}"))
    }

    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<()> {
        self.stream.get_mut().write_all(request)?;
        let head = self.head()?;
        if head.is_chunked {
            self.read_chunks()?;
        } else {
            self.read_body(head.length)?;
        }
        let is_there = !self.body.is_empty();
        ensure!(
            head.status.contains("200") && is_there,
            "refused: {}",
            head.status
        );
        Ok(())
    }

    fn head(&mut self) -> Result<Head> {
        let mut head = Head::default();
        self.stream.read_line(&mut head.status)?;
        loop {
            let mut line = String::new();
            ensure!(self.stream.read_line(&mut line)? > 0, "the server hung up");
            let Some((name, value)) = line.split_once(':') else {
                return Ok(head);
            };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => head.length = value.parse()?,
                ("transfer-encoding", _) => head.is_chunked = true,
                ("mcp-session-id", value) => self.session = Some(value.to_owned()),
                _ => {}
            }
        }
    }

    fn read_body(&mut self, length: usize) -> Result<()> {
        self.body.resize(length, 0);
        Ok(self.stream.read_exact(&mut self.body)?)
    }

    /// Keeps the last chunk that is not empty.
    fn read_chunks(&mut self) -> Result<()> {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16)?;
            if length > 0 {
                self.read_body(length)?;
            }
            self.stream.read_line(&mut line)?;
            if length == 0 {
                return Ok(());
            }
        }
    }
}

pub(crate) fn greeting() -> String {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "bench", "version": "1" }
        }
    })
    .to_string()
}

/// A call of `read_file`.
pub(crate) fn request(file: &str) -> String {
    let params = json!({ "name": "read_file", "arguments": { "root": "bench", "path": file } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string()
}

/// The same, with a word for the work.
pub(crate) fn with_progress(file: &str) -> String {
    request(file).replace("\"name\":", "\"_meta\":{\"progressToken\":1},\"name\":")
}

pub(crate) fn post(address: &str, body: &str, headers: &[String]) -> Vec<u8> {
    let length = body.len();
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n\
         {headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
