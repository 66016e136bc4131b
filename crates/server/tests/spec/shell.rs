//! The program from a shell: `call` here and on a running server, and what a mistyped word is told.

use std::process::{Command, Output};

use testkit::{Setup, Transport, Tree, quiet_command};

/// The program that is tested.
const BINARY: &str = env!("CARGO_BIN_EXE_mcp-filesystem");

fn said(command: &mut Command) -> (bool, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let all = [stdout, stderr].concat();
    (status.success(), String::from_utf8(all).unwrap())
}

fn call(tree: &Tree, words: &[&str]) -> (bool, String) {
    let mut command = quiet_command(BINARY);
    command.arg(tree.path()).arg("call").args(words);
    said(&mut command)
}

#[test]
fn shell_arguments_may_be_pairs() {
    let tree = Tree::new().file("a.txt", "one\ntwo\n");
    let (is_well, reply) = call(
        &tree,
        &["read_file", "path=a.txt", "offset_lines=2", "limit_lines=1"],
    );
    assert!(
        is_well && reply.contains("two") && !reply.contains("one"),
        "{reply}"
    );
    let (is_well, reply) = call(&tree, &["read_file", "pth=a.txt"]);
    assert!(!is_well && reply.contains("did you mean path?"), "{reply}");
}

#[test]
fn shell_a_mistyped_command_is_told_the_right_one() {
    let tree = Tree::new();
    let mut command = quiet_command(BINARY);
    let (is_well, message) = said(command.current_dir(tree.path()).arg("chek"));
    assert!(
        !is_well && message.contains("did you mean the command check?"),
        "{message}"
    );
    let mut command = quiet_command(BINARY);
    let (_, message) = said(command.current_dir(tree.path()).arg("photographs"));
    assert!(!message.contains("did you mean"), "{message}");
}

#[test]
fn shell_a_tool_of_two_sets_needs_the_name_of_one() {
    let tree = Tree::new().file("a.txt", "one\n");
    let roots = format!(
        "{{name: a, path: {:?}, allowed_tools: [\"*\"]}}",
        tree.path()
    );
    let config = format!("toolsets: [workspace, reference]\nroots: [{roots}]\n");
    let place = Tree::new().file("config.yaml", config);
    let call = |words: &[&str]| {
        let mut command = quiet_command(BINARY);
        let config = place.join("config.yaml");
        said(command.arg("--config").arg(config).arg("call").args(words))
    };
    let (is_well, message) = call(&["read_file", "path=a.txt"]);
    assert!(
        !is_well && message.contains("--toolset workspace"),
        "{message}"
    );
    let (is_well, reply) = call(&["--toolset", "workspace", "read_file", "path=a.txt"]);
    assert!(is_well, "{reply}");
    // Only one set has it.
    let (is_well, reply) = call(&["stat_file", "path=a.txt"]);
    assert!(is_well, "{reply}");
}

#[tokio::test]
async fn shell_a_running_server_is_called_with_its_token() {
    let tree = Tree::new().file("a.txt", "one\n");
    let secrets = Tree::new().file("tokens", "s3cret-token-of-ours\n");
    let tokens = secrets.join("tokens").display().to_string();
    let setup = Setup::new(BINARY)
        .root("workspace", tree.path())
        .set("server.bearer_tokens_file", tokens.as_str());
    let wire = setup.wire(Transport::Http).await;
    let url = wire.http().url("");
    let answer = async |words: &[&str], token: Option<&str>| {
        let mut command = quiet_command(BINARY);
        command.args(["call", "--url", &url]).args(words);
        token.map(|token| command.env("MCP_FILESYSTEM_TOKEN", token));
        tokio::task::spawn_blocking(move || said(&mut command))
            .await
            .unwrap()
    };
    let read = ["read_file", "path=a.txt"];
    let with_file = [&["--token-file", tokens.as_str()], read.as_slice()].concat();
    let (is_well, reply) = answer(&with_file, None).await;
    assert!(is_well && reply.contains("one"), "{reply}");
    let (is_well, reply) = answer(&read, Some("s3cret-token-of-ours")).await;
    assert!(is_well && reply.contains("one"), "{reply}");
    let (is_well, reply) = answer(&read, None).await;
    assert!(!is_well && reply.contains("--token-file"), "{reply}");
    let missing = ["read_file", "path=b.txt"];
    let (is_well, reply) = answer(&missing, Some("s3cret-token-of-ours")).await;
    assert!(!is_well && reply.contains("read_file failed"), "{reply}");
    let (is_well, reply) = answer(&["no_such_tool"], Some("s3cret-token-of-ours")).await;
    assert!(!is_well && reply.contains("no_such_tool"), "{reply}");
}

#[test]
fn shell_sizes_and_times_may_have_units() {
    let tree = Tree::new();
    let config = |limits: &str| {
        let roots = format!(
            "{{name: a, path: {:?}, allowed_tools: [\"*\"]}}",
            tree.path()
        );
        let text = format!("roots: [{roots}]\nlimits: {{{limits}}}\n");
        let place = Tree::new().file("config.yaml", text);
        let mut command = quiet_command(BINARY);
        said(
            command
                .arg("--config")
                .arg(place.join("config.yaml"))
                .arg("check"),
        )
    };
    let (is_well, report) = config("max_file_size: 2MB, request_timeout: 2m");
    assert!(is_well, "{report}");
    assert!(report.contains("content in one reply: 2 MB"), "{report}");
    assert!(report.contains("120 seconds each"), "{report}");
    let (_, plain) = config("max_file_size: 1048576");
    assert!(plain.contains("content in one reply: 1 MiB"), "{plain}");
    let (is_well, message) = config("max_file_size: 2 lots");
    assert!(
        !is_well && message.contains("such as 10MB or 1GiB"),
        "{message}"
    );
    let (is_well, message) = config("max_file_size: 100TB");
    assert!(
        !is_well && message.contains("a whole number from"),
        "{message}"
    );
}

#[test]
fn shell_a_directory_behind_the_command_is_told_its_place() {
    let place = Tree::new().dir("demo");
    for (command, line) in [
        (&["history", "demo"][..], "mcp-filesystem demo history"),
        (&["undo", "demo"], "mcp-filesystem demo undo CHANGE"),
        (
            &["call", "demo", "list_roots"],
            "mcp-filesystem demo call TOOL",
        ),
    ] {
        let mut program = quiet_command(BINARY);
        let (is_well, message) = said(program.current_dir(place.path()).args(command));
        let told = format!("the directory comes before the command: {line}");
        assert!(!is_well && message.contains(&told), "{message}");
    }
    let mut program = quiet_command(BINARY);
    let (_, message) = said(program.current_dir(place.path()).args(["history", "other"]));
    assert!(
        message.contains("no directory to serve: give one"),
        "{message}"
    );
}

#[tokio::test]
async fn shell_a_tool_that_is_not_there_is_told_the_right_one_or_its_set() {
    let tree = Tree::new();
    let setup = Setup::new(BINARY)
        .root("workspace", tree.path())
        .set("toolsets", testkit::json!(["workspace", "memory"]));
    let wire = setup.wire(Transport::Http).await;
    let url = wire.http().url("");
    let remote = ["call", "--url", url.as_str()];
    let local = [tree.path().to_str().expect("text"), "call"];
    let set = "view; it is in the set memory: add --toolset memory";
    let near = "did you mean read_file?";
    for (tool, word) in [
        (&["view"][..], set),
        (&["view", "path=."], set),
        (&["raed_file"], near),
        (&["raed_file", "path=a"], near),
    ] {
        for place in [&remote[..], &local] {
            let mut command = quiet_command(BINARY);
            command.args(place).args(tool);
            let ended = tokio::task::spawn_blocking(move || said(&mut command)).await;
            let (is_well, message) = ended.expect("it ends");
            assert!(
                !is_well && message.contains(word),
                "{place:?} {tool:?}: {message}"
            );
        }
    }
    let in_set = [&remote[..], &["--toolset", "memory", "view", "path=."]].concat();
    let mut command = quiet_command(BINARY);
    command.args(in_set);
    let ended = tokio::task::spawn_blocking(move || said(&mut command)).await;
    let (is_well, reply) = ended.expect("it ends");
    assert!(is_well, "{reply}");
}

/// Each call is a process of its own; they are one client that may undo what it changed.
#[test]
fn shell_a_user_undoes_the_last_of_their_own_calls() {
    let tree = Tree::new().file("a.txt", "old");
    for (content, name) in [("new", "a.txt"), ("made", "b.txt")] {
        let written = call(
            &tree,
            &[
                "write_file",
                &format!("path={name}"),
                &format!("content={content}"),
            ],
        );
        assert!(written.0, "{}", written.1);
    }
    for (undone, rest) in [("b.txt", "new"), ("a.txt", "old")] {
        let (is_well, reply) = call(&tree, &["undo"]);
        assert!(is_well && reply.contains(undone), "{reply}");
        assert_eq!(tree.text("a.txt"), rest);
        assert!(!tree.has("b.txt"));
    }
    let (is_well, reply) = call(&tree, &["undo"]);
    assert!(!is_well, "nothing of theirs is left: {reply}");
}

#[tokio::test]
async fn shell_systemd_is_told_when_the_server_answers_and_stops() {
    let (tree, place) = (Tree::new(), Tree::new());
    let path = place.join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let setup = Setup::new(BINARY).root("a", tree.path());
    let setup = setup.variable("NOTIFY_SOCKET", &path.display().to_string());
    let server = setup.start(Transport::Http).await;
    let said = |socket: &std::os::unix::net::UnixDatagram| {
        let mut state = [0; 64];
        let length = socket.recv(&mut state).unwrap();
        String::from_utf8_lossy(&state[..length]).into_owned()
    };
    assert_eq!(said(&socket), "READY=1");
    server.terminate();
    assert_eq!(said(&socket), "STOPPING=1");
}
