use super::*;
use crate::settings::AllowedTools;
use std::time::Duration;

use sandbox::{Durability, Landlock};
use toolset::{ReplyHalves, ReplyPolicy, TextForm};

use crate::settings::StateDir;
use crate::settings::{AuditOnFailure, KeyLocation, LogFormat, LogLevel, SessionPolicy, Settings};

fn read(yaml: &str) -> Result<Partial, SettingsError> {
    parse(yaml, Path::new("/etc/app"))
}

fn settings(yaml: &str) -> Settings {
    read(yaml).unwrap().complete()
}

/// The message for a whole file.
fn message(yaml: &str) -> String {
    let message = read(yaml).unwrap_err().to_string();
    assert!(!message.contains(char::is_control), "{message:?}");
    message
}

/// The message for a file with these lines besides one sound root.
fn message_beside_a_root(lines: &str) -> String {
    message(&format!(
        "roots: [{{name: a, path: /a, allowed_tools: ['*']}}]\n{lines}"
    ))
}

const SPEC: &str = r#"
host: "0.0.0.0"                    # Listen address (default: 0.0.0.0)
port: 8091                          # Listen port (default: 8091)
max_full_read_size: 1048576         # Max bytes for full file read (default: 1MB)

roots:
  - name: "workspace"               # Unique root identifier
    path: "/data/workspace"          # Absolute host filesystem path
    allowed_tools:                   # Tool allowlist (* = all)
      - "*"
  - name: "config"
    path: "/etc/myapp"
    allowed_tools:
      - "list_folder"
      - "read_file"
      - "stat_file"
      - "grep"
      - "glob"
"#;

#[test]
fn the_schema_of_the_specification_is_accepted_as_written() {
    let settings = settings(SPEC);
    assert_eq!(&*settings.host, "0.0.0.0");
    assert_eq!(settings.port, 8091);
    assert_eq!(settings.transport, Transport::Http);
    let [workspace, config] = settings.roots.as_slice() else {
        panic!("{:?}", settings.roots)
    };
    assert_eq!(workspace.name.as_str(), "workspace");
    assert_eq!(&workspace.tools, &AllowedTools::All);
    assert_eq!(workspace.path, Path::new("/data/workspace"));
    assert!(config.tools.allows(Toolset::Workspace, "grep"));
    assert!(!config.tools.allows(Toolset::Workspace, "write_file"));
}

const EVERY_KEY: &str = r#"
host: "127.0.0.1"
port: 1
max_full_read_size: 2
toolsets: [workspace, files]
roots:
  - name: workspace
    path: data
    allowed_tools: ["files.delete", copy, "guide.*"]
    read_only: true
    host_paths: true
    quota: {max_bytes: 10737418240, max_files: 100000}
files:   { root: workspace }
memory:  { root: workspace, undo: true }
memory_tool: { root: workspace, store: per_client, create: overwrite }
guide:
  project_root: .
  allowed_paths: [docs]
  cache_size: 3
  cache_ttl: 0
  cache: shared
  recheck: 5
  sampling_timeout: 4
  state_key_file: state.key
server:
  allowed_hosts: [example.org]
  allowed_origins: ["https://example.org"]
  max_body_size: 5
  max_connections: 6
  max_connections_per_address: 3
  trusted_proxies: ["10.0.0.0/8"]
  handshake_timeout: 12
  client_timeout: 11
  sessions: on
  max_sessions: 7
  tls: {cert: cert.pem, key: /keys/key.pem}
  bearer_tokens_file: tokens
  metrics_tokens_file: metrics-tokens
  replies: text
  text: json
  root_header: false
auth:
  oauth:
    issuer: https://login.example.org
    public_url: https://files.example.org
    audience: [api]
    jwks_file: keys.json
    scopes: {"files:read": readers}
cluster:
  state_dir: shared/state
limits:
  request_timeout: 8
  search_timeout: 12
  search_memory: 15
  max_file_size: 9
  max_concurrent_calls: 10
  max_held_bytes: 13
  max_held_bytes_per_client: 14
  confirm_timeout: 16
  rate: {per_second: 50, burst: 100}
durability: fast
admin: { listen: "127.0.0.1:8092", token_file: admin-token }
sandbox:
  landlock: off
log: { level: debug, format: text, audit_file: audit.log, audit_on_failure: continue, audit_head_every: 60 }
"#;

#[test]
fn every_key_of_the_contract_is_read() {
    let path = |path: &str| PathBuf::from(path);
    let partial = read(EVERY_KEY).unwrap();
    let root = &partial.roots.as_ref().unwrap()[0];
    assert_eq!(root.path.clone(), path("/etc/app/data"));
    assert_eq!(root.access, RootAccess::ReadOnly);
    assert!(root.host_paths);
    assert!(
        root.tools.allows(Toolset::Files, "delete") && root.tools.allows(Toolset::Files, "copy")
    );
    assert!(!root.tools.allows(Toolset::Memory, "delete"));
    let quota = Quota {
        max_bytes: Some(10_737_418_240),
        max_files: Some(100_000),
    };
    assert_eq!(root.quota, Some(quota));
    assert_eq!(root.origin.as_str(), "roots[0].path");

    let oauth = partial.oauth.clone().flatten().unwrap();
    assert_eq!(oauth.issuer, "https://login.example.org");
    assert_eq!(oauth.audience, ["api"]);
    assert_eq!(oauth.keys, KeyLocation::File(path("/etc/app/keys.json")));
    let scopes = [("files:read".to_owned(), "readers".to_owned())];
    assert_eq!(oauth.scopes, scopes);

    let expected = Partial {
        config_file: None,
        transport: Some(Transport::Http),
        host: "127.0.0.1".parse().ok(),
        port: Some(1),
        toolsets: Some(vec![Toolset::Workspace, Toolset::Files]),
        roots: partial.roots.clone(),
        clients: partial.clients.clone(),
        files_root: Some(Some("workspace".to_owned())),
        memory_root: Some(Some("workspace".to_owned())),
        memory_undo: Some(true),
        memory_tool_root: Some(Some("workspace".to_owned())),
        memory_tool_store: Some(toolset::MemoryStore::PerClient),
        memory_tool_create: Some(toolset::MemoryCreate::Overwrite),
        is_max_file_size_given: None,
        max_full_read_size: Some(2),
        max_file_size: Some(9),
        request_timeout: Some(Duration::from_secs(8)),
        search_timeout: Some(Duration::from_secs(12)),
        search_memory: Some(15),
        max_concurrent_calls: Some(10),
        max_held_bytes: Some(13),
        max_held_bytes_per_client: Some(14),
        confirm_timeout: Some(Duration::from_secs(16)),
        rate: Some(Some(CallRate {
            per_second: 50,
            burst: 100,
        })),
        durability: Some(Durability::Fast),
        landlock: Some(Landlock::Off),
        allowed_hosts: Some(vec!["example.org".to_owned()]),
        allowed_origins: Some(vec!["https://example.org".to_owned()]),
        max_body_size: Some(5),
        max_connections: Some(6),
        max_connections_per_address: Some(Some(3)),
        trusted_proxies: Some(vec!["10.0.0.0/8".parse().unwrap()]),
        handshake_timeout: Some(Duration::from_secs(12)),
        client_timeout: Some(Duration::from_secs(11)),
        sessions: Some(SessionPolicy::On),
        max_sessions: Some(7),
        tls: Some(Some(Tls {
            cert: path("/etc/app/cert.pem"),
            key: path("/keys/key.pem"),
        })),
        bearer_tokens_file: Some(Some(path("/etc/app/tokens"))),
        metrics_tokens_file: Some(Some(path("/etc/app/metrics-tokens"))),
        replies: Some(ReplyPolicy::Always(ReplyHalves::Text)),
        text: Some(TextForm::Json),
        root_header: Some(false),
        oauth: partial.oauth.clone(),
        cluster_state_dir: Some(Some(StateDir::At(path("/etc/app/shared/state")))),
        guide_project_root: Some(Some(path("/etc/app/."))),
        guide_allowed_paths: Some(Some(vec!["docs".to_owned()])),
        guide_cache: Some(toolset::guide::CacheSharing::Shared),
        guide_cache_size: Some(3),
        guide_recheck: Some(Duration::from_secs(5)),
        guide_cache_ttl: Some(Duration::ZERO),
        guide_sampling_timeout: Some(Duration::from_secs(4)),
        guide_state_key_file: Some(Some(path("/etc/app/state.key"))),
        admin_listen: Some(Some(([127, 0, 0, 1], 8092).into())),
        admin_token_file: Some(Some(path("/etc/app/admin-token"))),
        log_level: Some(LogLevel::Debug),
        log_format: Some(LogFormat::Text),
        audit_file: Some(Some(path("/etc/app/audit.log"))),
        audit_on_failure: Some(AuditOnFailure::Continue),
        audit_head_every: Some(Duration::from_secs(60)),
    };
    assert_eq!(partial, expected);
}

#[test]
fn empty_files_and_empty_sections_say_nothing() {
    let nothing = Partial {
        transport: Some(Transport::Http),
        ..Partial::default()
    };
    assert_eq!(read("").unwrap(), nothing);
    assert_eq!(
        read("server:\nlimits:\nguide: {}\nlog:\n").unwrap(),
        nothing
    );
}

const SET_NAMES: &str = "workspace, files, memory, guide, reference, memory_tool";

#[test]
fn mistakes_in_values_name_the_key_the_value_and_what_is_allowed() {
    let cases = [
        (
            "port: 65536",
            "port: expected a whole number from 0 to 65535, got 65536",
        ),
        (
            "port: -1",
            "port: expected a whole number from 0 to 65535, got -1",
        ),
        (
            "port: '80'",
            "port: expected a whole number from 0 to 65535, got \"80\"",
        ),
        (
            "port: 80.5",
            "port: expected a whole number from 0 to 65535, got 80.5",
        ),
        (
            "port:",
            "port: expected a whole number from 0 to 65535, got nothing",
        ),
        (
            "port: [1]",
            "port: expected a whole number from 0 to 65535, got a list",
        ),
        ("host: 5", "host: expected text (in quotes), got 5"),
        (
            "host: ''",
            "host: expected text that is not empty and has no control characters, got \"\"",
        ),
        (
            "host: localhost:80",
            "host: expected an IP address or a host name, without a port, got \"localhost:80\"",
        ),
        (
            "max_full_read_size: 0",
            "max_full_read_size: expected a whole number from 1 to 4294967296, got 0",
        ),
        (
            "max_full_read_size: 99999999999999999999999",
            "max_full_read_size: expected a whole number from 1 to 4294967296, got \
             100000000000000000000000",
        ),
        (
            "toolsets: workspace",
            "toolsets: expected a list, got \"workspace\"",
        ),
        (
            "toolsets: []",
            "toolsets: expected at least one tool set, got an empty list",
        ),
        (
            "toolsets: [files, files]",
            "toolsets[1]: duplicate tool set \"files\", already used at toolsets[0]",
        ),
        ("server: 5", "server: expected a map, got 5"),
        (
            "server: {root_header: yes}",
            "server.root_header: expected true or false, got \"yes\"",
        ),
        (
            "server: {sessions: of}",
            "server.sessions: unknown choice \"of\" (did you mean \"off\"?); allowed: auto, on, off",
        ),
        (
            "server: {sessions: true}",
            "server.sessions: expected one of auto, on, off, got true",
        ),
        (
            "server: {allowed_origins: [example.org]}",
            "server.allowed_origins[0]: expected an origin like https://example.org or \
             http://localhost:3000, got \"example.org\"",
        ),
        (
            "server: {tls: {cert: a}}",
            "server.tls.key: missing; expected a key file",
        ),
        (
            "server: {tls: {cert: a, key: 7}}",
            "server.tls.key: expected text (in quotes), got something else (not shown)",
        ),
        (
            "server: {bearer_tokens_file: [s3cret]}",
            "server.bearer_tokens_file: expected text, got something else (not shown)",
        ),
        (
            "limits: {request_timeout: 0}",
            "limits.request_timeout: expected a whole number from 1 to 86400, got 0",
        ),
        (
            "limits: {rate: {per_second: 5}}",
            "limits.rate.burst: missing; expected calls at once",
        ),
        (
            "log: {level: inof}",
            "log.level: unknown level \"inof\" (did you mean \"info\"?); allowed: error, warn, info, \
             debug, trace",
        ),
        (
            "log: {level: debgu}",
            "log.level: unknown level \"debgu\" (did you mean \"debug\"?); allowed: error, warn, info, \
             debug, trace",
        ),
        (
            "durability: sync",
            "durability: unknown durability \"sync\" (did you mean \"fsync\"?); allowed: fsync, fast",
        ),
        (
            "sandbox: {landlock: requir}",
            "sandbox.landlock: unknown choice \"requir\" (did you mean \"require\"?); allowed: auto, \
             require, off",
        ),
        (
            "files: {root: b}",
            "files.root: unknown root \"b\"; allowed: a",
        ),
        (
            "guide: {allowed_paths: [1]}",
            "guide.allowed_paths[0]: expected text (in quotes), got 1",
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(message_beside_a_root(yaml), expected, "{yaml}");
    }
    assert_eq!(
        message_beside_a_root("toolsets: [workspce]"),
        format!(
            "toolsets[0]: unknown tool set \"workspce\" (did you mean \"workspace\"?); allowed: {SET_NAMES}"
        )
    );
}

#[test]
fn unknown_keys_are_named_with_the_nearest_one() {
    let top = "host, port, max_full_read_size, toolsets, roots, clients, durability, files, memory, memory_tool, guide, \
               server, auth, cluster, limits, admin, sandbox, log";
    let cases = [
        (
            "hots: x",
            format!("hots: unknown key (did you mean \"host\"?); allowed: {top}"),
        ),
        (
            "bearer: s3cret",
            format!("bearer: unknown key; allowed: {top}"),
        ),
        (
            "\"a\\nb\": 1",
            format!("\"a\\nb\": unknown key; allowed: {top}"),
        ),
        ("7: 1", format!("7: unknown key; allowed: {top}")),
        (
            "log: {levl: info}",
            "log.levl: unknown key (did you mean \"level\"?); allowed: level, format, audit_file, audit_on_failure, audit_head_every"
                .to_owned(),
        ),
        (
            "sandbox: {x: 1}",
            "sandbox.x: unknown key; allowed: landlock".to_owned(),
        ),
        (
            "files: {x: 1}",
            "files.x: unknown key; allowed: root".to_owned(),
        ),
        (
            "limits: {rate: {per_second: 1, burst: 1, x: 1}}",
            "limits.rate.x: unknown key; allowed: per_second, burst".to_owned(),
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(message_beside_a_root(yaml), expected, "{yaml}");
    }
}

#[test]
fn mistakes_in_roots_say_which_root() {
    let cases = [
        ("roots:", "roots: expected a list, got nothing"),
        (
            "roots: []",
            "roots: expected at least one root, got an empty list",
        ),
        ("roots: {a: 1}", "roots: expected a list, got a map"),
        ("roots: [x]", "roots[0]: expected a map, got \"x\""),
        (
            "roots: [{path: /a, allowed_tools: []}]",
            "roots[0].name: missing; expected a name that clients use",
        ),
        (
            "roots: [{name: a, allowed_tools: []}]",
            "roots[0].path: missing; expected a directory",
        ),
        (
            "roots: [{name: a, pth: /tmp}]",
            "roots[0].pth: unknown key (did you mean \"path\"?); allowed: name, path, allowed_tools, read_only, host_paths, \
             quota, deny, history, confirm",
        ),
        (
            "roots: [{name: a, path: /a}]",
            "roots[0].allowed_tools: missing; expected a list of tool names, or [\"*\"]",
        ),
        (
            "roots: [{name: a, path: /a, allowed_tools: '*'}]",
            "roots[0].allowed_tools: expected a list, got \"*\"",
        ),
        (
            "roots: [{name: ' a', path: /a, allowed_tools: []}]",
            "roots[0].name: expected a name of at most 128 bytes without spaces around it, got \" a\"",
        ),
        (
            "roots:\n- {name: data, path: /a, allowed_tools: []}\n- {name: data, path: /b, allowed_tools: []}",
            "roots[1].name: duplicate root name \"data\", already used at roots[0].name",
        ),
        (
            "roots: [{name: a, path: /a, allowed_tools: [grep, list_roots]}]",
            "roots[0].allowed_tools[1]: \"list_roots\" is always available and cannot be restricted; \
             remove it from the list",
        ),
        (
            "roots: [{name: a, path: /a, allowed_tools: [], quota: {}}]",
            "roots[0].quota: expected max_bytes, max_files or both, got a map",
        ),
        (
            "roots: [{name: a, path: /a, allowed_tools: [], readonly: true}]",
            "roots[0].readonly: unknown key (did you mean \"read_only\"?); allowed: name, path, \
             allowed_tools, read_only, quota, history, confirm, deny, host_paths",
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(message(yaml), expected, "{yaml}");
    }
}

#[test]
fn unknown_tools_are_named_with_the_nearest_one() {
    let tool = |name: &str| {
        message(&format!(
            "roots: [{{name: a, path: /a, allowed_tools: [grep, '{name}']}}]"
        ))
    };
    let near = "roots[0].allowed_tools[1]: unknown tool \"raed_file\" (did you mean \"read_file\"?); \
                allowed: *, list_folder, read_file, ";
    assert!(tool("raed_file").starts_with(near), "{}", tool("raed_file"));
    let far =
        "roots[0].allowed_tools[1]: unknown tool \"nonexistent_tool\"; allowed: *, list_folder, ";
    assert!(
        tool("nonexistent_tool").starts_with(far),
        "{}",
        tool("nonexistent_tool")
    );
    assert_eq!(
        tool("memory.veiw"),
        "roots[0].allowed_tools[1]: unknown tool \"memory.veiw\" (did you mean \"memory.view\"?); \
         allowed: *, memory.view, memory.create, memory.str_replace, memory.insert, memory.delete, \
         memory.rename, memory.undo"
    );
    assert!(tool("nosuchset.copy").contains(
        "unknown tool \"nosuchset.copy\" (did you mean \"copy\"?); allowed: *, list_folder"
    ));
    assert!(
        tool("nosuchset.zzz").contains("unknown tool \"nosuchset.zzz\"; allowed: *, list_folder")
    );
    assert!(tool("workspace.list_roots").contains("is always available"));
}

#[test]
fn broken_yaml_is_one_line_with_its_place() {
    assert_eq!(
        message("port: 1\nport: 2\n"),
        "line 2: the key \"port\" is given twice"
    );
    let star = message("roots:\n  - name: a\n    path: /a\n    allowed_tools: [*]\n");
    assert!(star.starts_with("line 4, column "), "{star}");
    assert!(star.ends_with("(a star needs quotes: \"*\")"), "{star}");
    for yaml in [
        "a: [",
        "a: b: c",
        "a\n b: 'x",
        "--- 1\n--- 2\n",
        "!!set {a: 1}",
        "? [a]\n: b",
    ] {
        assert!(
            message(yaml).starts_with("line "),
            "{yaml:?}: {}",
            message(yaml)
        );
    }
    assert_eq!(
        message("just text"),
        "the file: expected a map, got \"just text\""
    );
}
