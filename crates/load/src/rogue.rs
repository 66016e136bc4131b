//! Clients that do not behave: slow, oversized, giving up, hanging up, talking nonsense. What they are told does not
//! matter; they only must not harm the others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::verdict::Counts;

const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\n";

/// Misbehaves in its own way until the time is over.
pub(crate) async fn misbehave(
    number: usize,
    address: SocketAddr,
    until: Instant,
    counts: Arc<Counts>,
) {
    while Instant::now() < until {
        // A connection that is refused or cut is what such a client has to expect.
        let _ = one(number, address).await;
        counts.misbehaved();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn one(number: usize, address: SocketAddr) -> std::io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(crate::ROGUE_HOST.into(), 0))?;
    let mut stream = socket.connect(address).await?;
    match number % 8 {
        0 => drip(&mut stream).await,
        1 => oversize(&mut stream).await,
        2 => give_up(&mut stream, "hash_file").await,
        3 => give_up(&mut stream, "grep").await,
        4 => nonsense(&mut stream).await,
        5 => half_a_body(&mut stream).await,
        6 => say_nothing(&mut stream).await,
        _ => read_nothing(&mut stream).await,
    }
}

/// A body that comes a byte at a time.
async fn drip(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = format!("{HEAD}Content-Length: 10000\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    for _ in 0..50 {
        stream.write_all(b"x").await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// A body that is far too large, of a length that is not said.
async fn oversize(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let piece = "x".repeat(1 << 20);
    for _ in 0..32 {
        stream
            .write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())
            .await?;
    }
    Ok(())
}

/// Long work that nobody waits for.
async fn give_up(stream: &mut TcpStream, tool: &str) -> std::io::Result<()> {
    let arguments = match tool {
        "grep" => json!({"root": "root", "pattern": "nowhere to be found", "path": "endless"}),
        _ => json!({"root": "root", "path": "endless", "algorithm": "sha256"}),
    };
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    let body = call.to_string();
    let request = format!(
        "{HEAD}Mcp-Protocol-Version: 2025-06-18\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(())
}

async fn nonsense(stream: &mut TcpStream) -> std::io::Result<()> {
    let bodies = [
        "{",
        "[]",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x/y\"}",
        "\u{0}",
    ];
    for body in bodies {
        let request = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await?;
        // Whatever comes is not looked at.
        let _ = stream.read(&mut [0; 512]).await?;
    }
    stream.write_all(b"BLAH\r\n\r\n").await
}

/// A large body that is never ended.
async fn half_a_body(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = format!("{HEAD}Content-Length: 16000000\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let sending = stream.write_all(&[b' '; 8_000_000]);
    // A body that has no room is not read.
    let _ = tokio::time::timeout(Duration::from_secs(2), sending).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    Ok(())
}

/// A connection on which nothing is asked.
async fn say_nothing(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost:").await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(())
}

/// Questions whose answers are never read.
async fn read_nothing(stream: &mut TcpStream) -> std::io::Result<()> {
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "rogue", "version": "1"}}});
    let body = list.to_string();
    for _ in 0..3 {
        let request = format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}
