//! The documents match the program: generated parts are fresh (`UPDATE_DOCS=1` writes them again), examples are
//! parsed and given to the real program, and the README's session is run.
#![expect(
    clippy::disallowed_methods,
    reason = "the documents are beside the code"
)]

#[path = "docs/figures.rs"]
mod figures;
#[path = "docs/first_call.rs"]
mod first_call;
#[path = "docs/messages.rs"]
mod messages;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

const BINARY: &str = env!("CARGO_BIN_EXE_mcp-filesystem");

/// The names of every tool set.
fn sets() -> Vec<&'static str> {
    toolset::every_set().iter().map(|names| names.set).collect()
}

/// The documents with tables of tools, and the sets of each.
fn tables() -> [(&'static str, Vec<&'static str>); 2] {
    [("README.md", sets()), ("CLAUDE.md", vec!["workspace"])]
}

/// The folders whose pages people read, from the repository's own.
const FOLDERS: [&str; 5] = ["", "docs/", ".agent_docs/", "bench/", "packaging/npm/"];

/// Every page that people read.
fn documents() -> Vec<String> {
    let mut names = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(document(folder)).unwrap();
        let entries = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let pages = entries.filter(|name| name.ends_with(".md"));
        names.extend(pages.map(|name| format!("{folder}{name}")));
    }
    names.sort();
    assert!(names.len() > 25, "{names:?}");
    names
}

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
    let pages: Vec<String> = sets()
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
    for (name, sets) in tables() {
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

/// A new tool is counted on these pages too.
#[test]
fn pages_count_the_tools_that_there_are() {
    let (overview, reliability) = (text("docs/overview.md"), text("docs/reliability.md"));
    for set in sets() {
        let count = table(set).lines().count() - 2;
        let row = format!("| `{set}` | {count} |");
        assert!(reliability.contains(&row), "docs/reliability.md: {row}");
        let told = match set {
            "workspace" => format!("`workspace`: {} tools", count - 1),
            "reference" => format!("`reference`: the {count} tools"),
            "memory_tool" => continue,
            _ => format!("`{set}`: {count} tools"),
        };
        assert!(overview.contains(&told), "docs/overview.md: {told}");
    }
}

/// A page without its code blocks, whose brackets are no links and whose comments are no headings.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let lines = page.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The anchors of a page: what its headings become in an address.
fn anchors(page: &str) -> Vec<String> {
    let prose = prose(page);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let slug = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter_map(|character| match character {
            ' ' => Some('-'),
            '-' | '_' => Some(character),
            other => other.is_alphanumeric().then_some(other),
        });
        kept.collect()
    };
    headings.map(slug).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut anchored = 0;
    for name in documents() {
        let page = text(&name);
        let prose = prose(&page);
        for link in prose.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.is_empty() || link.contains("://") {
                continue;
            }
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            let there = match target {
                "" => document(&name),
                _ => document(&name).parent().unwrap().join(target),
            };
            assert!(
                there.exists(),
                "{name} links to {target}, which is not there"
            );
            if !anchor.is_empty() {
                let page = std::fs::read_to_string(&there).unwrap();
                let known = anchors(&page);
                assert!(
                    known.iter().any(|one| one == anchor),
                    "{name} links to {link}: the anchors are {known:?}"
                );
                anchored += 1;
            }
        }
    }
    assert!(anchored > 4, "{anchored} links with an anchor");
}

/// The names of the files that the repository keeps, or `None` with a message outside of a clone.
fn tracked() -> Option<Vec<String>> {
    let listed = testkit::quiet_command("git")
        .args(["ls-files", "-z"])
        .current_dir(document(""))
        .output();
    let Some(listed) = listed.ok().filter(|output| output.status.success()) else {
        left_out("git lists no files here");
        return None;
    };
    let names = String::from_utf8(listed.stdout).unwrap();
    let names = names.split_terminator('\0').map(str::to_owned);
    Some(names.collect())
}

/// The lines that a merge left behind.
fn marks_of_a_merge(text: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    let marked = lines.filter(|(_, line)| {
        ["<<<<<<< ", ">>>>>>> "]
            .iter()
            .any(|mark| line.starts_with(mark))
    });
    marked.map(|(line, _)| line + 1).collect()
}

#[test]
fn no_file_has_marks_of_a_merge() {
    assert_eq!(
        marks_of_a_merge("a\n<<<<<<< ours\nb\n=======\nc\n>>>>>>> theirs\n"),
        [2, 6]
    );
    let Some(names) = tracked() else { return };
    assert!(names.len() > 500, "{} files", names.len());
    for name in names {
        // A link may lead nowhere, and a file that is no text has no lines.
        if let Ok(text) = std::fs::read_to_string(document(&name)) {
            let marked = marks_of_a_merge(&text);
            assert!(
                marked.is_empty(),
                "{name} has marks of a merge in the lines {marked:?}"
            );
        }
    }
}

/// Every page of the manual can be reached from the README or the overview.
#[test]
fn no_page_of_the_manual_is_hidden() {
    let linked = format!("{}{}", text("README.md"), text("docs/overview.md"));
    for name in documents() {
        if let Some(page) = name.strip_prefix("docs/") {
            let is_linked = linked.contains(&format!("({page})")) || linked.contains(&name);
            assert!(
                is_linked || page == "overview.md",
                "{name} is linked nowhere"
            );
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
        for pointer in [
            "/server/bearer_tokens_file",
            "/admin/token_file",
            "/log/audit_file",
        ] {
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
    for name in &documents() {
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
    assert!(nginx.contains("hash $remote_addr consistent;\n"));
    assert!(nginx.contains("$http_mcp_param_root") && !nginx.contains("non_idempotent;"));
    let haproxy = text("packaging/haproxy.cfg");
    for words in [
        "option httpchk GET /ready",
        "balance hdr(Mcp-Param-Root)",
        "stick on src",
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

/// The maps of servers in the examples for clients, by the clients' own names for them.
const SERVER_MAPS: [&str; 6] = [
    "mcpServers",
    "servers",
    "context_servers",
    "mcp",
    "mcp_servers",
    "extensions",
];

/// The arguments of every entry that starts this program, in whatever form the client has them.
fn arguments_in(example: &Value) -> Vec<Vec<Value>> {
    let maps = SERVER_MAPS.iter();
    let maps = maps.filter_map(|map| example[map].as_object());
    let servers = maps.flat_map(|map| map.values());
    servers.filter_map(arguments_of).collect()
}

fn arguments_of(server: &Value) -> Option<Vec<Value>> {
    // opencode has one list; Goose calls the command `cmd`.
    if let [command, arguments @ ..] = server["command"].as_array().map_or(&[][..], Vec::as_slice) {
        return (command == "mcp-filesystem").then(|| arguments.to_vec());
    }
    let is_named = |key: &&str| {
        let command = server[key].as_str().unwrap_or_default();
        command.rsplit('/').next() == Some("mcp-filesystem")
    };
    let is_ours = ["command", "cmd"].iter().any(is_named);
    is_ours.then(|| server["args"].as_array().unwrap().clone())
}

/// The examples for clients in a document, in each language that clients have their files in.
fn examples_in(name: &str) -> Vec<Value> {
    let json = blocks(name, "json").into_iter();
    let json = json.map(|block| serde_json::from_str(&block).unwrap());
    let yaml = blocks(name, "yaml").into_iter();
    let yaml = yaml.map(|block| self::yaml(name, &block));
    let toml = blocks(name, "toml").into_iter();
    let toml = toml.map(|block| toml_example(&block));
    json.chain(yaml).chain(toml).collect()
}

/// Codex's file: tables of strings and lists of strings, which are JSON to the right of the equal sign.
fn toml_example(text: &str) -> Value {
    let mut example = json!({});
    let mut table = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            table = format!("/{}", name.replace('.', "/"));
            let (map, server) = name.split_once('.').unwrap();
            example[map][server] = json!({});
        } else {
            let (key, value) = line.split_once(" = ").unwrap();
            let value: Value = serde_json::from_str(value).unwrap();
            example.pointer_mut(&table).unwrap()[key] = value;
        }
    }
    example
}

#[test]
fn examples_for_clients_have_arguments_that_work() {
    let mut checked = 0;
    for name in ["README.md", "docs/clients.md"] {
        for arguments in examples_in(name).iter().flat_map(arguments_in) {
            Place::new().check_arguments(name, &arguments);
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} examples");
}

/// Clients have their own words for the same entry. Each form is found, so that none goes unchecked.
#[test]
fn every_form_of_an_example_is_read() {
    let page = examples_in("docs/clients.md");
    for (map, key) in [
        ("mcpServers", "command"),
        ("servers", "command"),
        ("context_servers", "command"),
        ("mcp", "command"),
        ("mcp_servers", "command"),
        ("extensions", "cmd"),
    ] {
        let has = |example: &&Value| {
            example[map]["fs"][key].is_string() || example[map]["fs"][key].is_array()
        };
        assert!(page.iter().any(|example| has(&example)), "{map}");
    }
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
        let arguments = package["packageArguments"].as_array();
        for argument in arguments.into_iter().flatten() {
            if argument["name"] == "--toolset" {
                assert_eq!(argument["choices"], json!(sets()), "{package}");
            }
        }
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

/// Says that a test could not try something on this machine.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
fn left_out(what: &str) {
    eprintln!("left out: {what}");
}

/// Starts a command on a terminal, or returns `None` with a message if the machine has no `script` (util-linux) to make one.
fn terminal(directory: &Path, command: &str) -> Option<Child> {
    let binaries = Path::new(BINARY).parent().unwrap().display().to_string();
    let path = format!("{binaries}:{}", std::env::var("PATH").unwrap_or_default());
    let child = testkit::quiet_command("script")
        .args(["--quiet", "--command", command, "/dev/null"])
        .current_dir(directory)
        .env("PATH", path)
        // Of its own, because other tests tidy the one that they share.
        .env("XDG_STATE_HOME", directory.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    if child.is_err() {
        left_out(&format!("{command}: there is no `script` of util-linux"));
    }
    child.ok()
}

/// What a command shows on a terminal, if there is one.
fn on_a_terminal(directory: &Path, command: &str, input: &str) -> Option<String> {
    let mut child = terminal(directory, command)?;
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

/// A text in which what differs from run to run is masked: versions of files and times of day.
fn masked(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']);
    let mut after_version = false;
    let masked = words.map(|word| {
        let bare = word.trim_end();
        let end = &word[bare.len()..];
        let is_version = std::mem::replace(&mut after_version, bare == "[version");
        let mark = bare.trim_start_matches(|character: char| {
            character.is_alphanumeric() || "-_".contains(character)
        });
        match (is_version, is_time(bare)) {
            (true, _) => format!("VERSION{mark}{end}"),
            (_, true) => format!("TIME{end}"),
            _ => word.to_owned(),
        }
    });
    masked.collect()
}

/// Whether a word is a time of day such as `14:02:11Z`.
fn is_time(word: &str) -> bool {
    let shape = word.chars().map(|character| match character {
        '0'..='9' => '0',
        other => other,
    });
    shape.eq("00:00:00Z".chars())
}

#[test]
fn masks_hide_versions_and_times_only() {
    assert_eq!(
        masked("[version h_h-3; undo: 1]\n"),
        "[version VERSION; undo: 1]\n"
    );
    assert_eq!(masked("[version s1]\nx"), "[version VERSION]\nx");
    assert_eq!(masked("2 14:02:11Z copy 14:02\n"), "2 TIME copy 14:02\n");
}

/// What the commands about changes show to people.
#[test]
fn history_and_undo_are_for_people_on_a_terminal() {
    let directory = app();
    let shown = |command: &str| on_a_terminal(directory.path(), command, "");
    let write = "mcp-filesystem app call write_file path=readme.md content=changed";
    let Some(written) = shown(write) else {
        return;
    };
    assert!(written.contains("undo: 1]"), "{written}");
    let history = || shown("mcp-filesystem app history").unwrap();
    let first = history();
    let line = first.strip_prefix("\u{1b}[33m1\u{1b}[0m ").unwrap();
    let (time, rest) = line.split_at("2026-01-01 00:00:00".len());
    let shape: String = time
        .chars()
        .map(|character| {
            if character.is_ascii_digit() {
                '0'
            } else {
                character
            }
        })
        .collect();
    assert_eq!(shape, "0000-00-00 00:00:00", "{first}");
    assert!(
        rest.starts_with(" app write_file ~readme.md by "),
        "{first}"
    );
    let rehearsed = shown("mcp-filesystem app undo --dry-run 1").unwrap();
    assert_eq!(rehearsed, "1 could be undone\n");
    assert_eq!(
        shown("mcp-filesystem app undo 1").unwrap(),
        "1 undone by 2\n"
    );
    let both = history();
    assert_eq!(both.lines().count(), 2, "{both}");
    assert!(both.trim_end().ends_with("[undone by 2]"), "{both}");
    let verified = shown("mcp-filesystem app history verify").unwrap();
    let lines = verified
        .strip_prefix("app: ")
        .and_then(|rest| rest.split_once(' '));
    let (count, rest) = lines.unwrap();
    assert!(count.parse::<u64>().unwrap() > 1, "{verified}");
    assert_eq!(rest, "lines, none altered\n", "{verified}");
    let text = std::fs::read_to_string(directory.path().join("app/readme.md")).unwrap();
    assert_eq!(text, "# App\n");
}

#[test]
fn the_sessions_of_the_readme_are_what_happens() {
    let directory = app();
    let mut commands = 0;
    for session in blocks("README.md", "console") {
        for step in session.split("$ ").skip(1) {
            let (command, expected) = step.split_once('\n').unwrap();
            if let Some(shown) = on_a_terminal(directory.path(), command, "") {
                assert_eq!(masked(&shown), masked(expected), "{command}");
            }
            commands += 1;
        }
    }
    assert!(commands > 9, "{commands} commands");
}

/// The lines of the recording, in order: commands begin with `$ `.
fn recorded(picture: &str) -> String {
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&amp;", "&"),
    ];
    let lines = picture.lines().filter_map(|line| {
        let (_, shown) = line.strip_prefix("<text")?.split_once('>')?;
        shown.strip_suffix("</text>")
    });
    let replaced = |line: &str| {
        let replace = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        entities.iter().fold(line.to_owned(), replace) + "\n"
    };
    lines.map(replaced).collect()
}

#[test]
fn the_recorded_session_is_what_happens() {
    let directory = app();
    let session = recorded(&text("docs/pictures/session.svg"));
    let steps: Vec<&str> = session.split("$ ").skip(1).collect();
    assert_eq!(steps.len(), 3, "{session}");
    for step in steps {
        let (command, expected) = step.split_once('\n').unwrap();
        if let Some(shown) = on_a_terminal(directory.path(), command, "") {
            assert_eq!(masked(&shown), masked(expected), "{command}");
        }
    }
}

#[test]
fn pictures_of_the_readme_are_there() {
    let readme = text("README.md");
    let pictures = readme.split("<img src=\"").skip(1);
    let pictures: Vec<&str> = pictures.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(pictures.len(), 2, "{pictures:?}");
    for name in pictures {
        assert!(document(name).exists(), "{name}");
    }
}

#[test]
fn make_run_says_that_the_first_build_takes_long() {
    let directory = tempfile::tempdir().unwrap();
    let makefile = document("Makefile");
    let make = testkit::quiet_command("make")
        .args(["--no-print-directory", "run", "CARGO=echo", "--file"])
        .arg(makefile)
        .current_dir(directory.path())
        .output();
    let Ok(output) = make else {
        left_out("there is no make");
        return;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("The first build takes some minutes"),
        "{said}"
    );
    assert!(
        said.contains("--config config/mcp-filesystem.yaml"),
        "{said}"
    );
    assert!(directory.path().join("workspace").is_dir());
}

/// `log.format: auto` is text for a person and JSON for a program.
#[test]
fn the_log_is_text_on_a_terminal_and_json_elsewhere() {
    let directory = app();
    let started = |log: &str| {
        let mut lines = log.lines();
        lines
            .find(|line| line.contains("server started"))
            .map(str::to_owned)
    };
    if let Some(shown) = on_a_terminal(directory.path(), "mcp-filesystem app", "\u{4}") {
        let line = started(&shown).unwrap();
        assert!(!line.starts_with('{') && line.contains("INFO"), "{line}");
    }
    let output = program().arg(directory.path()).output().unwrap();
    let line = started(&String::from_utf8(output.stderr).unwrap()).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "INFO");
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

/// The commands of the program, as its help lists them.
fn commands() -> Vec<String> {
    let help = said(&["--help"]);
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    // Two blanks before a name; more before the rest of a description.
    let names = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    names
        .filter_map(|line| line.split(' ').next().map(str::to_owned))
        .collect()
}

/// The long flags that a text names.
fn flags(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|character: char| !(character.is_ascii_lowercase() || character == '-'));
    words.filter(|word| word.starts_with("--") && word.len() > 3)
}

#[test]
fn the_readme_names_every_command_and_flag() {
    let readme = text("README.md");
    for command in commands() {
        let is_named = [format!("`{command}`"), format!("`{command} ")];
        let is_named = is_named.iter().any(|form| readme.contains(form.as_str()));
        assert!(is_named || command == "help", "README.md: {command}");
    }
    for flag in flags(&said(&["--help"])) {
        let is_named = readme.contains(&format!("`{flag}"));
        let is_usual = ["--help", "--version"].contains(&flag);
        assert!(is_named || is_usual, "README.md: {flag}");
    }
}

/// What is typed behind the program's name in a document, up to the end of the code.
fn typed(page: &str) -> Vec<&str> {
    let mut typed = Vec::new();
    for line in page.lines() {
        for (place, name) in line.match_indices("mcp-filesystem ") {
            let before = &line[..place];
            let is_command = before.trim().is_empty() && !before.is_empty()
                || before.ends_with('`')
                || before.ends_with("$ ")
                || before.ends_with("-- ");
            if is_command {
                let rest = &line[place + name.len()..];
                typed.extend(rest.split(['`', '#', '|', '>']).next());
            }
        }
    }
    typed
}

#[test]
fn commands_in_documents_have_flags_that_exist() {
    let mut help = said(&["--help"]);
    for command in commands() {
        help += &said(&["help", &command]);
    }
    for words in [["help", "audit", "verify"], ["help", "history", "forget"]] {
        help += &said(&words);
    }
    let known: Vec<&str> = flags(&help).collect();
    let mut checked = 0;
    for name in documents() {
        let page = text(&name);
        for flag in typed(&page).into_iter().flat_map(flags) {
            assert!(known.contains(&flag), "{name}: {flag}");
            checked += 1;
        }
    }
    assert!(checked > 20, "{checked} flags");
}

#[test]
fn the_manual_and_completions_come_out() {
    assert!(said(&["man"]).contains("mcp\\-filesystem"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(said(&["completions", shell]).contains("mcp-filesystem"));
    }
}
