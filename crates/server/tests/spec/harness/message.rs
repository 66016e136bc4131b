//! JSON-RPC messages for tests that speak without a client.

use testkit::{Value, json};

/// The first request of a client with these capabilities.
pub(crate) fn initialize(capabilities: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": {"name": "by hand", "version": "1"}}})
}

/// What a client sends once it knows the server.
pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

/// A call of a tool.
pub(crate) fn tool_call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}})
}

/// A call that takes longer than any test: it hashes the sparse file `endless`.
pub(crate) fn hash_endless(id: u64) -> Value {
    let arguments = json!({"root": "workspace", "path": "endless", "algorithm": "md5"});
    tool_call(id, "hash_file", &arguments)
}

/// Takes back the call with this id.
pub(crate) fn cancelled(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}
