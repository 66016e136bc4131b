//! Many clients over HTTP at once: how many calls a server handles, and how long each client waits.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Durability, Own};

/// Our server on a port of its own.
pub(crate) struct HttpServer {
    child: Child,
    clock: ClockId,
    pub(crate) address: SocketAddr,
}

impl HttpServer {
    /// Starts it and reads from its first line where it listens.
    pub(crate) fn start(own: &Own) -> Result<HttpServer> {
        HttpServer::start_with(own, Durability::Fsync, &[])
    }

    /// The same with a durability and more flags.
    pub(crate) fn start_with(
        own: &Own,
        durability: Durability,
        flags: &[&str],
    ) -> Result<HttpServer> {
        let line = own.line("workspace", durability, "http")?;
        let (program, rest) = line.split_first().context("no server")?;
        let mut child = Command::new(program)
            .args(rest)
            .args(flags)
            .stderr(Stdio::piped())
            .spawn()?;
        let log = child.stderr.take().context("no log")?;
        let mut lines = BufReader::new(log).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let line: Value = serde_json::from_str(&line).ok()?;
            line.get("address")?.as_str()?.parse().ok()
        });
        // Somebody has to read the log, or the server waits for that.
        std::thread::spawn(move || lines.for_each(drop));
        let clock = clock_getcpuclockid(Pid::from_raw(i32::try_from(child.id())?))?;
        Ok(HttpServer {
            child,
            clock,
            address: address.context("the server did not say where it listens")?,
        })
    }
}

impl HttpServer {
    /// The processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        Ok(Duration::from(self.clock.now()?))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a load.
#[derive(Debug, Clone)]
pub(crate) struct Served {
    /// Calls a second.
    pub(crate) rate: f64,
    /// What each call took, in seconds.
    pub(crate) waits: Vec<f64>,
}

/// A request over HTTP that calls a tool.
pub(crate) fn request(address: SocketAddr, tool: &str, arguments: &Value) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": arguments});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Lets a number of clients send a request repeatedly for a time.
pub(crate) fn serve(
    address: SocketAddr,
    request: &[u8],
    clients: usize,
    time: Duration,
) -> Result<Served> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let request: Arc<[u8]> = request.into();
        let over = Arc::new(AtomicBool::new(false));
        let begun = Instant::now();
        let tasks: Vec<_> = (0..clients)
            .map(|_| tokio::spawn(client(address, Arc::clone(&request), Arc::clone(&over))))
            .collect();
        tokio::time::sleep(time).await;
        over.store(true, Ordering::Relaxed);
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(task.await??);
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of calls")]
        let rate = waits.len() as f64 / begun.elapsed().as_secs_f64();
        Ok(Served { rate, waits })
    })
}

async fn client(
    address: SocketAddr,
    request: Arc<[u8]>,
    over: Arc<AtomicBool>,
) -> Result<Vec<f64>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut waits, mut buffer) = (Vec::new(), Vec::new());
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        stream.write_all(&request).await?;
        reply(&mut stream, &mut buffer).await?;
        waits.push(begun.elapsed().as_secs_f64());
    }
    Ok(waits)
}

/// Reads one reply with a stated length to its end.
pub(crate) async fn reply(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    loop {
        if let Some(length) = whole_length(buffer)
            && buffer.len() >= length?
        {
            return Ok(());
        }
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server hung up");
        }
    }
}

/// How long a reply is with its head, once that is there; an error if it is none of success.
fn whole_length(buffer: &[u8]) -> Option<Result<usize>> {
    let end = buffer.windows(4).position(|piece| piece == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(buffer.get(..end)?).to_ascii_lowercase();
    if !head.starts_with("http/1.1 200") {
        return Some(Err(anyhow::anyhow!("not served: {head}")));
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    Some(
        length
            .map(|length| end + length)
            .context("a reply without a length"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_the_head() {
        assert!(whole_length(b"HTTP/1.1 200 OK\r\nContent-Le").is_none());
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(whole_length(whole).unwrap().unwrap(), whole.len());
        assert!(whole_length(b"HTTP/1.1 503 No\r\n\r\n").unwrap().is_err());
    }
}
