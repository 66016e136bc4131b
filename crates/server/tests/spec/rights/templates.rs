//! Calls of every tool of every set. A tool without a template fails the test, so that none is forgotten.

use testkit::{Value, json};

use super::ground::ROOTS;

/// Where a call goes.
pub(super) struct At<'place> {
    /// The root's name.
    pub(super) root: &'place str,
    /// The root's directory on the host.
    pub(super) host: &'place str,
    /// The path in it.
    pub(super) path: &'place str,
    /// A path that the client may write, and that is new.
    pub(super) free: &'place str,
}

/// A file that exists for every client.
const FILE: &str = "open/sub/file.txt";
/// A time before everything.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";
/// What finds every mark, and is none.
const MARKS: &str = "SECRET-OF-[A-Z]+";
/// Nearly what is in a file that is hidden.
const NEARLY: &str = "SECRET-OF-ZEBRAFISX-9";

/// The arguments of some calls of a tool, or nothing if it is not known.
pub(super) fn calls(set: &str, tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    match set {
        "workspace" => workspace(tool, at),
        "files" => files(tool, at),
        "memory" => memory(tool, at),
        "memory_tool" => (tool == "memory").then(|| memory_tool(at)),
        "reference" => reference(tool, at),
        "guide" => guide(tool, at),
        _ => None,
    }
}

fn workspace(tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    let At {
        root, path, free, ..
    } = at;
    let here = |more: Value| {
        let mut arguments = json!({"root": root, "path": path});
        let own = arguments.as_object_mut().expect("an object");
        own.extend(more.as_object().cloned().unwrap_or_default());
        arguments
    };
    let pair = |from: &str, to: &str| json!({"source_root": root, "source_path": from, "dest_root": root, "dest_path": to});
    let number = ROOTS.iter().position(|name| name == root);
    let number = number.unwrap_or_default();
    let patch = format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{NEARLY}\n+new\n");
    Some(match tool {
        "list_roots" => vec![json!({})],
        "list_folder" => vec![here(json!({})), here(json!({"depth": 4}))],
        "read_file" => vec![
            here(json!({})),
            json!({"root": root, "paths": [path, FILE]}),
            here(json!({"offset_bytes": 0, "limit_bytes": 20})),
            here(json!({"at": LONG_AGO})),
        ],
        "write_file" => vec![
            here(json!({"content": "new"})),
            json!({"root": root, "files": [{"path": free, "content": "1"}, {"path": path, "content": "2"}]}),
        ],
        "remove_file" | "create_folder" | "remove_folder" | "stat_file" | "permissions_file" => {
            vec![here(json!({}))]
        }
        "edit_file" => vec![
            here(json!({"edits": [{"old": NEARLY, "new": "x"}]})),
            here(json!({"edits": [{"old": "plain", "new": "plainer"}], "dry_run": true})),
        ],
        "patch_file" => vec![
            here(json!({"patch": patch})),
            json!({"root": root, "patch": patch}),
            here(json!({"patch": format!("@@\n-plain text of root {number}\n+plain words\n")})),
        ],
        "hash_file" => vec![here(json!({"algorithm": "sha256"}))],
        "copy" | "move" => vec![pair(path, free), pair(FILE, path)],
        "compare" => vec![
            here(json!({"other": FILE})),
            here(json!({"other": "open"})),
            json!({"root": root, "path": FILE, "other": path}),
            here(json!({"at": LONG_AGO})),
        ],
        "grep" => vec![
            here(json!({"pattern": MARKS})),
            here(json!({"pattern": ".", "output": "count", "glob_filter": "**/*"})),
        ],
        "glob" => vec![
            here(json!({"pattern": "**/*"})),
            here(json!({"regex": ".", "sort": "size"})),
        ],
        "watch" => vec![here(json!({"since": LONG_AGO, "timeout_seconds": 1}))],
        "changes" => vec![here(json!({"diff": true}))],
        "undo" => vec![here(json!({"dry_run": true})), here(json!({}))],
        _ => return None,
    })
}

fn files(tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    let At { path, free, .. } = at;
    Some(match tool {
        "list" => vec![json!({"path": path, "recursive": true, "include_hidden": true})],
        "read" => vec![
            json!({"path": path}),
            json!({"path": path, "encoding": "base64"}),
        ],
        "write" => vec![json!({"path": path, "content": "new", "make_dirs": true})],
        "mkdir" | "info" | "hash" => vec![json!({"path": path})],
        "delete" => vec![
            json!({"path": path}),
            json!({"path": path, "recursive": true, "force": true}),
        ],
        "copy" | "move" => vec![
            json!({"source": path, "destination": free, "overwrite": true}),
            json!({"source": FILE, "destination": path, "overwrite": true}),
        ],
        "search" => vec![json!({"root_path": path, "pattern": MARKS, "regex": true})],
        "compare" => vec![
            json!({"path": path, "other": "open"}),
            json!({"path": FILE, "other": path}),
        ],
        "watch" => vec![json!({"path": path, "since": LONG_AGO, "timeout_seconds": 1})],
        "undo" => vec![json!({"path": path})],
        _ => return None,
    })
}

fn memory(tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    let At { path, free, .. } = at;
    Some(match tool {
        "view" => vec![
            json!({"path": path}),
            json!({"path": path, "view_range": [1, 2]}),
        ],
        "create" => vec![json!({"path": path, "content": "new", "encoding": "utf-8"})],
        "str_replace" => vec![
            json!({"path": path, "old_str": NEARLY, "new_str": "x"}),
            json!({"path": path, "old_str": "plain", "new_str": "plain"}),
        ],
        "insert" => vec![json!({"path": path, "insert_line": 1, "new_str": "x\n"})],
        "delete" => vec![json!({"path": path})],
        "rename" => vec![
            json!({"old_path": path, "new_path": free}),
            json!({"old_path": FILE, "new_path": path}),
        ],
        "undo" => vec![json!({"path": path})],
        _ => return None,
    })
}

fn memory_tool(at: &At<'_>) -> Vec<Value> {
    let below = |path: &str| format!("/memories/{path}");
    let (path, free, file) = (below(at.path), below(at.free), below(FILE));
    vec![
        json!({"command": "view", "path": path}),
        json!({"command": "create", "path": path, "file_text": "new"}),
        json!({"command": "str_replace", "path": path, "old_str": NEARLY, "new_str": "x"}),
        json!({"command": "insert", "path": path, "insert_line": 0, "insert_text": "x\n"}),
        json!({"command": "delete", "path": path}),
        json!({"command": "rename", "old_path": path, "new_path": free}),
        json!({"command": "rename", "old_path": file, "new_path": path}),
    ]
}

fn reference(tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    let on_host = |path: &str| format!("{}/{path}", at.host);
    let (path, free, file) = (on_host(at.path), on_host(at.free), on_host(FILE));
    Some(match tool {
        "read_file" | "read_text_file" => {
            vec![json!({"path": path}), json!({"path": path, "head": 1})]
        }
        "read_media_file" | "list_directory" | "create_directory" | "get_file_info" => {
            vec![json!({"path": path})]
        }
        "read_multiple_files" => vec![json!({"paths": [file, path]})],
        "write_file" => vec![json!({"path": path, "content": "new"})],
        "edit_file" => vec![
            json!({"path": path, "edits": [{"oldText": NEARLY, "newText": "x"}]}),
            json!({"path": path, "edits": [{"oldText": "plain", "newText": "plainer"}], "dryRun": true}),
        ],
        "list_directory_with_sizes" => vec![json!({"path": path, "sortBy": "size"})],
        "directory_tree" => vec![json!({"path": path})],
        "move_file" => vec![
            json!({"source": path, "destination": free}),
            json!({"source": file, "destination": path}),
        ],
        "search_files" => vec![json!({"path": path, "pattern": "**"})],
        "list_allowed_directories" => vec![json!({})],
        _ => return None,
    })
}

fn guide(tool: &str, at: &At<'_>) -> Option<Vec<Value>> {
    let path = at.path;
    let entries = json!([{"name": "other.md", "type": "file"}]);
    Some(match tool {
        "guide_cache_file" => vec![
            json!({"path": path, "content": "other"}),
            json!({"files": [{"path": at.free, "content": "other"}]}),
        ],
        "guide_list_directory" => vec![json!({"path": path, "entries": entries})],
        "guide_read_file" => vec![json!({"path": path, "content": "other"})],
        "guide_request_file" => vec![json!({"path": path})],
        "guide_request_directory" => vec![json!({"path": path, "recursive": true})],
        "guide_cache_stats" => vec![json!({})],
        _ => return None,
    })
}

/// The requests of other methods about a path.
pub(super) fn methods(at: &At<'_>) -> Vec<(&'static str, Value)> {
    let At { root, path, .. } = at;
    let uri = format!("fs://{root}/{path}");
    let resource = json!({"type": "ref/resource", "uri": format!("fs://{root}/{{+path}}")});
    let of = |kind: Value, typed: &str| {
        json!({"ref": kind, "argument": {"name": "path", "value": typed},
            "context": {"arguments": {"root": root}}})
    };
    let begun: String = path.chars().take(path.len().saturating_sub(9)).collect();
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let mut requests = vec![
        ("resources/read", json!({"uri": uri})),
        ("resources/directory/read", json!({"uri": uri})),
        ("completion/complete", of(resource.clone(), path)),
        ("completion/complete", of(resource.clone(), &begun)),
        ("completion/complete", of(resource, "")),
        ("completion/complete", of(prompt("changes"), &begun)),
    ];
    for name in ["undo", "changes", "review"] {
        let arguments = json!({"root": root, "path": path});
        requests.push(("prompts/get", json!({"name": name, "arguments": arguments})));
        requests.push((
            "prompts/get",
            json!({"name": name, "arguments": {"root": root}}),
        ));
    }
    requests
}

/// The requests of other methods that name nothing.
pub(super) const LISTS: [&str; 5] = [
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "tools/list",
    "ping",
];
