//! Mistakes in the configuration, seen from outside: the real binary, its exit code, and one clear
//! line on standard error.

#![expect(
    clippy::disallowed_methods,
    reason = "tests make the files that the server reads"
)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The binary with none of the variables it reads, and nobody on standard input.
fn binary() -> Command {
    let mut command = testkit::quiet_command(env!("CARGO_BIN_EXE_mcp-filesystem"));
    command.stdin(Stdio::null());
    command
}

fn error_line(output: &Output) -> String {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(error.lines().count(), 1, "one line: {error}");
    assert!(!error.contains("panicked"), "{error}");
    assert!(output.stdout.is_empty(), "nothing on standard output");
    error.trim_end().to_owned()
}

/// Starts the server with a config file and returns why it did not start.
fn refusal(directory: &Path, yaml: &str) -> String {
    let config = directory.join("config.yaml");
    std::fs::write(&config, yaml).unwrap();
    let output = binary().arg("--config").arg(&config).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let line = error_line(&output);
    let prefix = format!("mcp-filesystem: {:?}: ", config.to_string_lossy());
    let rest = line.strip_prefix(&prefix);
    rest.unwrap_or_else(|| panic!("{line} should start with {prefix}"))
        .to_owned()
}

fn one_root(directory: &Path, tools: &str) -> String {
    format!(
        "roots: [{{name: a, path: {:?}, allowed_tools: {tools}}}]\n",
        directory.display().to_string()
    )
}

#[test]
fn workspace_e2e_081_duplicate_root_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let root = format!("- {{name: data, path: {path:?}, allowed_tools: ['*']}}\n");
    assert_eq!(
        refusal(directory.path(), &format!("roots:\n{root}{root}")),
        "roots[1].name: duplicate root name \"data\", already used at roots[0].name"
    );
}

#[test]
fn workspace_e2e_082_missing_root_directory() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    assert_eq!(
        refusal(directory.path(), &one_root(&missing, "['*']")),
        format!(
            "roots[0].path: cannot use the directory {:?}: no such file or directory",
            missing.to_string_lossy()
        )
    );
}

#[test]
fn workspace_fr_018_a_root_that_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let line = refusal(directory.path(), &one_root(&file, "['*']"));
    assert!(line.ends_with(": not a directory"), "{line}");
}

#[test]
fn workspace_e2e_083_unknown_tool_in_an_allowlist() {
    let directory = tempfile::tempdir().unwrap();
    let line = refusal(
        directory.path(),
        &one_root(directory.path(), "[nonexistent_tool]"),
    );
    let expected = "roots[0].allowed_tools[0]: unknown tool \"nonexistent_tool\"; allowed: *, ";
    assert!(line.starts_with(expected), "{line}");
}

#[test]
fn workspace_fr_018_empty_roots() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(
        refusal(directory.path(), "roots: []\n"),
        "roots: expected at least one root, got an empty list"
    );
}

#[test]
fn odd_files_are_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let bomb = "[".repeat(200_000);
    for yaml in [
        "a: [",
        "\u{0}",
        "just text",
        "port: {",
        "- 1",
        "&a [*a]",
        bomb.as_str(),
    ] {
        let line = refusal(directory.path(), yaml);
        assert!(line.len() < 1000, "{line}");
    }
}

#[test]
fn a_config_file_that_cannot_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let large = directory.path().join("large.yaml");
    std::fs::write(&large, "#".repeat(1024 * 1024 + 1)).unwrap();
    let binary_file = directory.path().join("binary.yaml");
    std::fs::write(&binary_file, [0xff, 0xfe, 0x00]).unwrap();
    let cases = [
        (
            directory.path().join("missing.yaml"),
            "no such file or directory",
        ),
        (directory.path().to_owned(), "not a regular file"),
        (large, "larger than 1048576 bytes"),
        (binary_file, "not UTF-8 text"),
    ];
    for (path, reason) in cases {
        let output = binary()
            .env("MCP_FILESYSTEM_CONFIG", &path)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let shown = path.to_string_lossy();
        let expected = format!("mcp-filesystem: cannot read the config file {shown:?}: {reason}");
        assert_eq!(error_line(&output), expected);
    }
}

#[test]
fn nothing_to_serve_says_how_to_give_something() {
    let output = binary().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        error_line(&output),
        "mcp-filesystem: no directory to serve: give one (mcp-filesystem DIR), or a config file with \
         roots (--config FILE)"
    );
}

#[test]
fn a_missing_directory_on_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let output = binary()
        .current_dir(directory.path())
        .arg("nope")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = error_line(&output);
    assert!(
        line.starts_with("mcp-filesystem: DIR: cannot use the directory \""),
        "{line}"
    );
    let output = binary()
        .env("FS_SERVER_ROOT", "/nope-nope")
        .output()
        .unwrap();
    assert_eq!(
        error_line(&output),
        "mcp-filesystem: FS_SERVER_ROOT: cannot use the directory \"/nope-nope\": no such file or \
         directory"
    );
}

#[test]
fn mistakes_in_flags_are_exit_code_2() {
    let cases = [
        ("--port=70000", ""),
        ("--no-such", ""),
        ("--transport=tcp", ""),
        ("--log-level=loud", ""),
        (".", "many"),
    ];
    for (flag, timeout) in cases {
        let mut command = binary();
        if !timeout.is_empty() {
            command.env("FS_REQUEST_TIMEOUT", timeout);
        }
        let output = command.arg(flag).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}: {output:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn check_tells_what_would_be_served() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    std::fs::write(
        &config,
        format!("host: 127.0.0.1\n{}", one_root(directory.path(), "[grep]")),
    )
    .unwrap();
    let output = binary()
        .arg("check")
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    for expected in [
        "config.yaml: valid",
        "1 of ",
        " tools: grep",
        "http on 127.0.0.1:8091",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
}

/// What `check` answers to a config, and its exit code.
fn checked(directory: &Path, yaml: &str) -> (Option<i32>, String) {
    let config = directory.join("checked.yaml");
    std::fs::write(&config, yaml).unwrap();
    let output = binary().arg("check").arg("--config").arg(&config).output();
    let output = output.unwrap();
    let said = match output.status.success() {
        true => String::from_utf8(output.stdout.clone()).unwrap(),
        false => error_line(&output),
    };
    (output.status.code(), said)
}

#[test]
fn check_says_which_root_each_set_uses() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["code", "notes"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    let yaml = "
toolsets: [workspace, memory, memory_tool]
roots:
  - {name: code, path: code, allowed_tools: [grep]}
  - {name: notes, path: notes, allowed_tools: [memory.view, memory_tool.memory]}
memory: {root: notes}
";
    let (code, said) = checked(directory.path(), yaml);
    assert_eq!(code, Some(0), "{said}");
    let (roots, rest) = said.split_once("\nWho can reach it\n").unwrap();
    let (of_code, of_notes) = roots.split_once("\n  notes: ").unwrap();
    assert!(of_code.contains("\n    workspace: 1 of "), "{said}");
    assert!(!of_code.contains("memory"), "{said}");
    for line in [
        "\n    workspace: no tool\n",
        "\n    memory (this root only): 1 of 6 tools: view\n",
        "\n    memory_tool (this root only): its one tool\n",
    ] {
        assert!(of_notes.contains(line), "{line} in {said}");
    }
    assert!(rest.contains("/metrics, /health, /ready\n"), "{said}");
}

/// A set of which clients could use nothing is a slip; the server does not start, and `check` says the same.
#[test]
fn a_set_without_a_usable_tool_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sets = "toolsets: [workspace, files]\n";
    let cases = [
        (
            format!("{sets}{}", one_root(directory.path(), "[grep]")),
            "the tool set files has no usable tool: its root \"a\" allows none of them",
        ),
        (
            one_root(directory.path(), "[]"),
            "the tool set workspace has no usable tool: no root allows any of its tools",
        ),
        (
            one_root(directory.path(), "[write_file], read_only: true"),
            "the tool set workspace has no usable tool: no root allows any of its tools",
        ),
    ];
    for (yaml, expected) in cases {
        let (code, said) = checked(directory.path(), &yaml);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
        let config = directory.path().join("checked.yaml");
        let output = binary().arg("--config").arg(&config).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(error_line(&output), said);
    }
    let usable = format!("{sets}{}", one_root(directory.path(), "[grep, files.read]"));
    let (code, said) = checked(directory.path(), &usable);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn check_reads_tokens_as_a_start_would_and_tells_who_else_can() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let tokens = root.join("tokens");
    std::fs::write(&tokens, "# only words\n").unwrap();
    let config = directory.path().join("config.yaml");
    let server = "server: {bearer_tokens_file: root/tokens}\n";
    std::fs::write(&config, format!("{server}{}", one_root(&root, "['*']"))).unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o640)).unwrap();
    let check = || {
        let output = binary().arg("check").arg("--config").arg(&config).output();
        output.unwrap()
    };
    let broken = check();
    assert_eq!(broken.status.code(), Some(1), "{broken:?}");
    assert!(error_line(&broken).contains("there is no token in it"));

    std::fs::write(&tokens, "one-of-the-two-tokens\ntwo-of-the-two-tokens\n").unwrap();
    std::fs::set_permissions(&tokens, PermissionsExt::from_mode(0o604)).unwrap();
    let text = String::from_utf8(check().stdout).unwrap();
    for expected in [
        "a bearer token is required; there are 2",
        "tokens and files travel unencrypted",
        "the tokens file (",
        "is readable by every user of this machine, any of whom can use what is in it",
        "the root \"a\" contains the tokens file: agents may be able to change it",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("the config file ("), "{text}");
}

#[test]
fn the_shipped_config_is_valid() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/mcp-filesystem.yaml");
    let directory = tempfile::tempdir().unwrap();
    // Checked in another directory, where its relative root exists.
    std::fs::create_dir(directory.path().join("config")).unwrap();
    std::fs::create_dir(directory.path().join("workspace")).unwrap();
    let copy = directory.path().join("config/mcp-filesystem.yaml");
    std::fs::copy(shipped, &copy).unwrap();
    let output = binary()
        .arg("check")
        .arg("--config")
        .arg(&copy)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        text.contains("http on 127.0.0.1:8091: every program on this machine"),
        "{text}"
    );
}

#[test]
fn check_says_what_deny_hides() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.key", "b.key", "plain.txt"] {
        std::fs::write(directory.path().join(name), "x").unwrap();
    }
    let path = directory.path().display().to_string();
    let config = directory.path().join("config.yaml");
    let root = format!("{{name: a, path: {path:?}, allowed_tools: ['*'], deny: ['*.key']}}");
    std::fs::write(&config, format!("roots: [{root}]\n")).unwrap();
    let output = binary().arg("check").arg("--config").arg(&config).output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(
        said.contains("deny *.key: hides 2 entries: a.key, b.key\n"),
        "{said}"
    );
}
