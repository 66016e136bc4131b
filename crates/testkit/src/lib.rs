//! For tests only: trees of files, and the real server binary with a real client in front of it.
//!
//! Everything here panics on errors, because a test that cannot continue has failed. A panic while a
//! [`Server`] lives prints the command line, the config, the last calls with their replies, and the
//! server's log on standard error.
//!
//! ```no_run
//! # async fn example() {
//! use testkit::{Setup, Transport, Tree, json};
//!
//! let tree = Tree::new().file("hello.txt", "Hello");
//! let setup = Setup::new("path/to/mcp-filesystem").root("workspace", tree.path());
//! let server = setup.start(Transport::Http).await;
//! let read = server.call("read_file", json!({"root": "workspace", "path": "hello.txt"})).await;
//! assert_eq!(read.ok()["content"], "Hello");
//! # }
//! ```

#![expect(
    clippy::disallowed_methods,
    reason = "tests prepare and inspect host directories from outside the sandbox"
)]

mod agent;
mod http;
mod outcome;
mod process;
mod report;
mod server;
mod setup;
mod tree;
mod wire;

pub use http::{Http, Reply};
pub use outcome::Outcome;
pub use process::{Ended, Memory, quiet_command, state_home};
pub use rmcp;
pub use rmcp::model::ProtocolVersion;
pub use serde_json::{Value, json};
pub use server::{AnotherClient, Server};
pub use setup::{Setup, Transport, over_both};
pub use tree::{Tree, names_in, text_of, write_text};
pub use wire::Wire;
