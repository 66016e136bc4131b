//! The wire: stdio and HTTP in front of the tool sets.

mod door;
mod http;
mod shutdown;
mod stdio;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use toolset::{Deployment, Gate, RootGrant, Service, workspace};

/// Lets AI agents work on files without ever leaving the directories they were given.
#[derive(Parser)]
struct Arguments {
    /// Serves HTTP on this address instead of stdio.
    #[arg(long)]
    http: Option<String>,
    /// The directories to serve.
    directories: Vec<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::new("info,rmcp=error");
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(arguments));
    // Work that hangs in the kernel must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(500));
    ended
}

async fn serve(arguments: Arguments) -> anyhow::Result<()> {
    let roots = arguments
        .directories
        .iter()
        .map(|path| grant(path))
        .collect::<anyhow::Result<_>>()?;
    let gate = Gate::new(Deployment {
        roots,
        ..Deployment::default()
    });
    let service = Service::new(vec![workspace::toolset()], gate)?;
    let shutdown = shutdown::on_signals()?;
    let Some(address) = arguments.http else {
        return stdio::serve(service, 16 << 20, shutdown).await;
    };
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let options = http::Options {
        door: door::Door::new("127.0.0.1", &[], &[]),
        max_body_size: 16 << 20,
        max_connections: 1024,
    };
    let endpoint = http::Endpoint {
        name: "workspace".to_owned(),
        service,
        sessions: false,
    };
    tracing::info!(%address, "listening");
    http::serve(listener, options, vec![endpoint], shutdown).await;
    Ok(())
}

fn grant(path: &std::path::Path) -> anyhow::Result<RootGrant> {
    let name = path
        .file_name()
        .map_or_else(|| "root".to_owned(), |n| n.to_string_lossy().into());
    Ok(RootGrant::new(name, Arc::new(sandbox::Root::open(path)?)))
}
