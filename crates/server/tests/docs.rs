//! The documents match the program: generated parts are fresh (`UPDATE_DOCS=1` writes them again), examples are
//! parsed and given to the real program, and the README's session is run.
#![expect(
    clippy::disallowed_methods,
    reason = "the documents are beside the code"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_mcp-filesystem");

const SETS: [&str; 6] = [
    "workspace",
    "files",
    "memory",
    "guide",
    "reference",
    "memory_tool",
];

/// The documents with tables of tools, and the set of each.
const TABLES: [(&str, &[&str]); 2] = [("README.md", &SETS), ("CLAUDE.md", &["workspace"])];

/// The documents that people read.
const DOCUMENTS: [&str; 19] = [
    "README.md",
    "ARCHITECTURE.md",
    "CLAUDE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    ".agent_docs/mcp-filesystem.md",
    "docs/admin.md",
    "docs/architecture.md",
    "docs/clients.md",
    "docs/configuration.md",
    "docs/decisions.md",
    "docs/deployment.md",
    "docs/oauth.md",
    "docs/overview.md",
    "docs/reference-set.md",
    "docs/resources.md",
    "docs/security.md",
    "docs/rights.md",
    "docs/troubleshooting.md",
];

fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(document(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The program without the environment variables that it reads.
fn program() -> Command {
    let mut command = testkit::quiet_command(BINARY);
    command.stdin(Stdio::null());
    command
}

fn said(arguments: &[&str]) -> String {
    let output = program().args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a document with what it should be, or writes it.
fn check(name: &str, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(document(name), wanted).unwrap();
    }
    let is = std::fs::read_to_string(document(name)).unwrap_or_default();
    assert!(
        is == wanted,
        "{name} is stale: run UPDATE_DOCS=1 cargo test -p mcp-filesystem --test docs"
    );
}

#[test]
fn the_tool_reference_has_every_field_of_a_failure() {
    for (set, fields) in [
        (
            "guide",
            ["success", "error", "error_type", "instruction"].as_slice(),
        ),
        ("memory", &["code", "message", "path"]),
    ] {
        let page = said(&["tools", "--toolset", set]);
        let tables: Vec<&str> = page.split("| reply field |").skip(1).collect();
        assert!(!tables.is_empty(), "{set} has tools");
        for (table, field) in tables
            .iter()
            .flat_map(|table| fields.iter().map(move |field| (table, field)))
        {
            assert!(
                table.contains(&format!("\n| `{field}` |")),
                "{set}: {field}"
            );
        }
    }
}

#[test]
fn the_tool_reference_is_fresh() {
    let pages: Vec<String> = SETS
        .iter()
        .map(|set| said(&["tools", "--toolset", set]))
        .collect();
    check("docs/functionalities.md", &pages.join("\n"));
}

#[test]
fn the_reference_of_the_config_file_is_fresh() {
    check("docs/configuration.md", &said(&["settings"]));
}

#[test]
fn the_config_to_begin_with_is_fresh() {
    let page = said(&["settings", "--format", "yaml"]);
    check("config/mcp-filesystem.yaml", &page);
}

#[test]
fn the_tables_of_tools_are_fresh() {
    for (name, sets) in TABLES {
        let mut page = text(name);
        for set in sets {
            let opening = format!("<!-- tools:{set} -->\n");
            assert_eq!(page.matches(&opening).count(), 1, "{name}: {opening}");
            let start = page.find(&opening).unwrap() + opening.len();
            let end = start + page[start..].find("<!-- /tools -->").unwrap();
            page.replace_range(start..end, &table(set));
        }
        check(name, &page);
    }
}

/// One row a tool, with the first sentence of its description.
fn table(set: &str) -> String {
    let said: Value =
        serde_json::from_str(&said(&["tools", "--toolset", set, "--format", "json"])).unwrap();
    let mut table = "| tool | what it does |\n|---|---|\n".to_owned();
    for tool in said["tools"].as_array().unwrap() {
        let description = tool["description"].as_str().unwrap();
        let sentence = description
            .split_once(". ")
            .map_or(description, |(first, _)| first);
        let sentence = sentence.trim_end_matches('.');
        table += &format!("| `{}` | {sentence}. |\n", tool["name"].as_str().unwrap());
    }
    table
}

#[test]
fn links_between_documents_lead_somewhere() {
    for name in DOCUMENTS {
        let page = text(name);
        for link in page.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let from = document(name);
            let there = from.parent().unwrap().join(target).exists();
            assert!(there, "{name} links to {target}, which is not there");
        }
    }
}

/// The fenced blocks of one language in a document.
fn blocks(name: &str, language: &str) -> Vec<String> {
    let page = text(name);
    let opening = format!("```{language}\n");
    let blocks = page.split(&opening).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

fn yaml(name: &str, text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
}

/// A place where the paths of examples exist.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn directory(&self, example: &str) -> String {
        let path = self.0.path().join(example.trim_start_matches('/'));
        std::fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    }

    fn file(&self, example: &str, text: &str) -> String {
        let path = self.0.path().join(example.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// Gives a config to the real program, with its paths moved here.
    fn check_config(&self, name: &str, mut config: Value) {
        if config.get("roots").is_none() {
            config["roots"] = json!([{"name": "a", "path": "/a", "allowed_tools": ["*"]}]);
        }
        for root in config["roots"].as_array_mut().unwrap() {
            root["path"] = self.directory(root["path"].as_str().unwrap()).into();
        }
        for pointer in ["/server/bearer_tokens_file", "/log/audit_file"] {
            if let Some(path) = config.pointer_mut(pointer).filter(|path| path.is_string()) {
                *path = self
                    .file(path.as_str().unwrap(), "a-token-of-sixteen\n")
                    .into();
            }
        }
        if let Some(path) = config.pointer_mut("/cluster/state_dir") {
            *path = self.directory(path.as_str().unwrap()).into();
        }
        if let Some(path) = config.pointer_mut("/guide/project_root") {
            *path = self.directory(path.as_str().unwrap()).into();
        }
        let file = self.file("config.yaml", &config.to_string());
        let output = program().args(["check", "--config", &file]).output();
        passed(name, &output.unwrap());
    }

    /// Gives a client's arguments to the real program, with their paths moved here.
    fn check_arguments(&self, name: &str, arguments: &[Value]) {
        let moved = arguments.iter().map(|argument| {
            let argument = argument.as_str().unwrap();
            match argument {
                "." | "${workspaceFolder}" => self.directory("/workspace"),
                path if path.starts_with('/') => self.directory(path),
                other => other.to_owned(),
            }
        });
        let moved: Vec<String> = moved.collect();
        let output = program().args(&moved).arg("check").output().unwrap();
        passed(&format!("{name}: {moved:?}"), &output);
    }
}

fn passed(what: &str, output: &Output) {
    assert!(output.status.success(), "{what}: {output:?}");
}

/// The keys that make a YAML example a config of ours.
const KEYS: [&str; 5] = ["roots", "server", "limits", "toolsets", "log"];

#[test]
fn configs_in_documents_and_packages_are_valid() {
    let mut checked = 0;
    for name in DOCUMENTS {
        for block in blocks(name, "yaml") {
            let config = yaml(name, &block);
            if KEYS.iter().any(|key| config.get(key).is_some()) {
                Place::new().check_config(name, config);
                checked += 1;
            }
        }
    }
    assert!(checked >= 2, "{checked} configs");
    for name in ["config/docker.yaml", "packaging/systemd.yaml"] {
        Place::new().check_config(name, yaml(name, &text(name)));
    }
}

#[test]
fn kubernetes_gets_a_config_that_works() {
    let name = "packaging/kubernetes.yaml";
    let page = text(name);
    let parts: Vec<Value> = page.split("\n---\n").map(|part| yaml(name, part)).collect();
    let kinds: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "ConfigMap",
            "Deployment",
            "Service",
            "PersistentVolumeClaim"
        ]
    );
    let config = parts[0]["data"]["config.yaml"].as_str().unwrap();
    assert!(config.contains("state_dir"), "replicas share a directory");
    Place::new().check_config(name, yaml(name, config));
    let container = &parts[1]["spec"]["template"]["spec"]["containers"][0];
    let probe = |name: &str| container[name]["httpGet"]["path"].clone();
    assert_eq!(probe("readinessProbe"), "/ready");
    assert_eq!(probe("livenessProbe"), "/health");
    assert_eq!(parts[3]["spec"]["accessModes"], json!(["ReadWriteMany"]));
}

/// No replica that restarts is taken out, and nothing is sent twice that may change something.
#[test]
fn proxies_lose_no_call_while_replicas_restart() {
    let nginx = text("packaging/nginx.conf");
    let replicas = nginx
        .lines()
        .filter(|line| line.trim().starts_with("server 10."));
    let replicas: Vec<&str> = replicas.collect();
    assert!(replicas.len() >= 6 && replicas.iter().all(|line| line.contains("max_fails=0")));
    assert!(nginx.contains("$http_mcp_param_root") && !nginx.contains("non_idempotent;"));
    let haproxy = text("packaging/haproxy.cfg");
    for words in [
        "option httpchk GET /ready",
        "balance hdr(Mcp-Param-Root)",
        "stick match req.hdr(Mcp-Session-Id)",
        "retry-on conn-failure\n",
    ] {
        assert!(haproxy.contains(words), "{words}");
    }
}

#[test]
fn compose_starts_the_image_of_this_version() {
    let compose = yaml("compose.yaml", &text("compose.yaml"));
    let service = &compose["services"]["mcp-filesystem"];
    let image = format!("mcp-filesystem:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(service["image"], json!(image));
    assert_eq!(service["read_only"], json!(true));
    for name in [
        "Makefile",
        "packaging/kubernetes.yaml",
        "docs/deployment.md",
    ] {
        assert!(text(name).contains(&image), "{name} names {image}");
    }
}

/// The servers that an example for a client names, whatever the client calls the map.
fn servers(example: &Value) -> Vec<&Value> {
    let maps = ["mcpServers", "servers", "context_servers"];
    let maps = maps.iter().filter_map(|map| example[map].as_object());
    maps.flat_map(|map| map.values()).collect()
}

#[test]
fn examples_for_clients_have_arguments_that_work() {
    let mut checked = 0;
    for name in ["README.md", "docs/clients.md"] {
        for block in blocks(name, "json") {
            let example: Value = serde_json::from_str(&block).unwrap();
            for server in servers(&example) {
                if server["command"] == "mcp-filesystem" {
                    Place::new().check_arguments(name, server["args"].as_array().unwrap());
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 10, "{checked} examples");
}

#[test]
fn the_registry_entry_and_the_bundle_are_of_this_version() {
    let entry: Value = serde_json::from_str(&text("server.json")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(entry["version"], json!(version));
    assert!(entry["description"].as_str().unwrap().len() <= 100);
    for package in entry["packages"].as_array().unwrap() {
        let identifier = package["identifier"].as_str().unwrap();
        let is_ours = package["version"] == json!(version) || identifier.contains(version);
        assert!(is_ours, "{package}");
    }
    let manifest: Value = serde_json::from_str(&text("packaging/mcpb/manifest.json")).unwrap();
    assert_eq!(manifest["version"], json!(version));
    let arguments = manifest["server"]["mcp_config"]["args"].as_array().unwrap();
    let filled: Vec<Value> = arguments
        .iter()
        .map(|argument| match argument.as_str().unwrap() {
            "${user_config.log_level}" => manifest["user_config"]["log_level"]["default"].clone(),
            "${user_config.directories}" => json!("/home/me/Documents"),
            _ => argument.clone(),
        })
        .collect();
    Place::new().check_arguments("the bundle", &filled);
}

/// What a command shows on a terminal, or `None` if the machine has no `script` to make one.
fn on_a_terminal(directory: &Path, command: &str, input: &str) -> Option<String> {
    let binaries = Path::new(BINARY).parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let child = Command::new("script")
        .args(["--quiet", "--command", command, "/dev/null"])
        .current_dir(directory)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = child.ok()?;
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

/// The directory of the README's session.
fn app() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("app/src");
    std::fs::create_dir_all(&source).unwrap();
    let program = "fn main() {\n    // TODO: say hello\n}\n";
    std::fs::write(source.join("main.rs"), program).unwrap();
    std::fs::write(directory.path().join("app/readme.md"), "# App\n").unwrap();
    directory
}

/// A text without the line of a version: a file's own changes when it is two seconds old.
fn without_version(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    let lines = lines.filter(|line| !line.starts_with("[version "));
    lines.collect()
}

#[test]
fn the_session_of_the_readme_is_what_happens() {
    let directory = app();
    for session in blocks("README.md", "console") {
        for step in session.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            if let Some(shown) = on_a_terminal(directory.path(), command, "") {
                assert_eq!(
                    without_version(&shown),
                    without_version(expected),
                    "{command}"
                );
            }
        }
    }
}

#[test]
fn a_person_who_starts_the_server_is_told_what_it_waits_for() {
    let directory = app();
    // Ctrl-D is the end of the input.
    let Some(shown) = on_a_terminal(directory.path(), "mcp-filesystem app", "\u{4}") else {
        return;
    };
    let served = directory.path().join("app").display().to_string();
    for expected in [
        "waits for an MCP client on standard input",
        "\"mcpServers\"",
        &format!("\"{served}\""),
        &format!("{served} call list_roots"),
        "server started",
    ] {
        assert!(shown.contains(expected), "{expected} in {shown}");
    }
}

#[test]
fn the_manual_and_completions_come_out() {
    assert!(said(&["man"]).contains("mcp\\-filesystem"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["completions", shell]).contains("mcp-filesystem"));
    }
}
