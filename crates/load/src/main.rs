//! Holds a server under load: well-behaved clients of both kinds beside misbehaving ones, for a bounded time.
//!
//! It fails when a well-behaved client sees a single error, when memory or descriptors keep growing, or when the
//! server does not end in time while everybody is still connected.

mod client;
mod rogue;
mod server;
mod verdict;

use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use tokio::task::JoinSet;

use crate::server::{Sample, Server};
use crate::verdict::{Counts, Verdict};

/// Where the misbehaving clients call from.
const ROGUE_HOST: [u8; 4] = [127, 9, 9, 9];

/// Where a well-behaved client calls from: twenty share an address, as people in an office do.
fn host_of(number: usize) -> IpAddr {
    let host = u8::try_from(number / 20 % 250).unwrap_or_default();
    [127, 0, 1, host + 1].into()
}

/// Holds a server under load and tells whether it held.
#[derive(Debug, Parser)]
struct Arguments {
    /// The server's program.
    program: PathBuf,
    /// How many clients there are; every tenth misbehaves.
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// How long they go on.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
}

fn main() -> ExitCode {
    match held(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "it did not hold: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn held(arguments: &Arguments) -> Result<()> {
    server::raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let verdict = runtime.block_on(run(arguments))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    std::io::stdout().write_all(verdict.table().as_bytes())?;
    verdict.judge()
}

async fn run(arguments: &Arguments) -> Result<Verdict> {
    let server = Server::start(&arguments.program).await?;
    let idle = server.sample()?;
    let counts = Arc::new(Counts::default());
    let until = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut crowd = JoinSet::new();
    for number in 0..arguments.clients {
        let (address, counts) = (server.address, Arc::clone(&counts));
        match number % 10 {
            9 => crowd.spawn(rogue::misbehave(number / 10, address, until, counts)),
            _ => crowd.spawn(client::behave(number, address, until, counts)),
        };
    }
    let samples = watch(&server, until).await?;
    // Everybody is still connected when the server is asked to end.
    let ending = server.stop().await?;
    crowd.shutdown().await;
    Ok(Verdict {
        clients: arguments.clients,
        seconds: arguments.seconds,
        counts,
        idle,
        samples,
        ending,
    })
}

/// Looks at the server once a second.
async fn watch(server: &Server, until: Instant) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    while Instant::now() + Duration::from_secs(1) < until {
        tokio::time::sleep(Duration::from_secs(1)).await;
        samples.push(server.sample()?);
    }
    tokio::time::sleep_until(until.into()).await;
    Ok(samples)
}
