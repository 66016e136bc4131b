//! Bearer tokens.

use testkit::{Reply, Setup, Transport, Tree, json};

use super::list_roots;
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

fn with_tokens(tree: &Tree, tokens: &Tree) -> Setup {
    Workspace::setup(tree).set("server.bearer_tokens_file", json!(tokens.join("tokens")))
}

async fn ask(http: &testkit::Http, token: &str) -> Reply {
    let value = format!("Bearer {token}");
    http.post("/mcp", &[("authorization", &value)], &list_roots())
        .await
}

#[tokio::test]
async fn a_token_is_needed_where_tokens_are_set() {
    let (tree, tokens) = (
        Tree::new(),
        Tree::new().file("tokens", "# ours\nalpha-1-of-sixteen\nbeta-2-of-sixteen\n"),
    );
    let wire = with_tokens(&tree, &tokens).wire(Transport::Http).await;
    let http = wire.http();
    let missing = http.post("/mcp", &[], &list_roots()).await;
    assert_eq!(missing.status, 401, "{missing:?}");
    let challenge = missing.header("www-authenticate").unwrap();
    assert_eq!(challenge, "Bearer realm=\"mcp-filesystem\"");
    assert!(
        missing.body.contains("server.bearer_tokens_file"),
        "{missing:?}"
    );
    let wrong = ask(http, "alpha-2-of-sixteen").await;
    assert_eq!(wrong.status, 401, "{wrong:?}");
    assert!(
        wrong
            .header("www-authenticate")
            .unwrap()
            .contains("invalid_token")
    );
    let query = http
        .post(
            "/mcp?access_token=alpha-1-of-sixteen&token=alpha-1-of-sixteen",
            &[],
            &list_roots(),
        )
        .await;
    assert_eq!(
        query.status, 401,
        "a token in the address would end up in logs"
    );
    for token in ["alpha-1-of-sixteen", "beta-2-of-sixteen"] {
        assert_eq!(ask(http, token).await.status, 200);
    }
    assert_eq!(http.get("/health").await.status, 200);
    assert_eq!(http.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn tokens_are_never_logged_and_clients_are_known_by_a_digest() {
    let (tree, tokens) = (
        Tree::new(),
        Tree::new().file("tokens", "alpha-1-of-sixteen\nbeta-2-of-sixteen\n"),
    );
    let setup = with_tokens(&tree, &tokens).arguments(["--log-level", "trace"]);
    let wire = setup.wire(Transport::Http).await;
    ask(wire.http(), "beta-2-of-sixteen").await;
    ask(wire.http(), "gamma-3-of-sixteen").await;
    let line = wire.logged(|line| line["tool"] == "list_roots").await;
    assert!(
        line["client"]
            .as_str()
            .unwrap()
            .ends_with("(token c0237e32)"),
        "{line}"
    );
    let ended = wire.stop().await;
    let log = ended.stderr.join("\n");
    for token in [
        "alpha-1-of-sixteen",
        "beta-2-of-sixteen",
        "gamma-3-of-sixteen",
    ] {
        assert!(!log.contains(token), "{token} is in the log");
    }
}

#[tokio::test]
async fn tokens_are_read_again_on_hangup() {
    let (tree, tokens) = (
        Tree::new(),
        Tree::new().file("tokens", "old-of-sixteen-letters\n"),
    );
    let setup = with_tokens(&tree, &tokens);
    let wire = setup.wire(Transport::Http).await;
    assert_eq!(ask(wire.http(), "old-of-sixteen-letters").await.status, 200);
    // Editors and secret stores put another file in its place.
    std::fs::write(tokens.join("next"), "new-of-sixteen-letters\n").unwrap();
    std::fs::rename(tokens.join("next"), tokens.join("tokens")).unwrap();
    wire.reload();
    wire.logged(|line| {
        line["message"] == "the configuration, tokens and certificates were read again"
    })
    .await;
    assert_eq!(ask(wire.http(), "old-of-sixteen-letters").await.status, 401);
    assert_eq!(ask(wire.http(), "new-of-sixteen-letters").await.status, 200);
    std::fs::write(tokens.join("tokens"), "# nobody\n").unwrap();
    wire.reload();
    wire.logged(|line| line["level"] == "ERROR").await;
    assert_eq!(
        ask(wire.http(), "new-of-sixteen-letters").await.status,
        200,
        "the old ones stay in force"
    );
}

#[tokio::test]
async fn a_file_without_tokens_is_a_start_up_error() {
    let tree = Tree::new();
    for (text, reason) in [
        ("# none\n", "there is no token in it"),
        ("a b\n", "line 1"),
        ("fifteen-letters\n", "16"),
    ] {
        let tokens = Tree::new().file("tokens", text);
        let ended = with_tokens(&tree, &tokens).refuse(Transport::Http).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let line = ended.stderr.join("\n");
        assert!(
            line.contains("server.bearer_tokens_file") && line.contains(reason),
            "{line}"
        );
        assert!(!line.contains("a b"), "{line}");
    }
    let ended = with_tokens(&tree, &Tree::new())
        .refuse(Transport::Http)
        .await;
    assert!(
        ended.stderr.join("\n").contains("no such file"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn each_token_has_its_own_allowance() {
    let (tree, tokens) = (
        Tree::new(),
        Tree::new().file("tokens", "one-of-the-two-tokens\ntwo-of-the-two-tokens\n"),
    );
    let setup =
        with_tokens(&tree, &tokens).set("limits.rate", json!({"per_second": 1, "burst": 2}));
    let wire = setup.wire(Transport::Http).await;
    let is_limited = async |token: &str| {
        let reply = ask(wire.http(), token).await.json();
        reply["result"]["structuredContent"]["error"]["code"] == "rate_limited"
    };
    assert!(
        !is_limited("one-of-the-two-tokens").await && !is_limited("one-of-the-two-tokens").await
    );
    assert!(is_limited("one-of-the-two-tokens").await);
    assert!(
        !is_limited("two-of-the-two-tokens").await,
        "the same address, another client"
    );
}

/// A server with the lines of the config file that `token` prints; the client gets these roots.
async fn let_in_by(tree: &Tree, lines: &str, roots: &str) -> testkit::Wire {
    let lines = lines.replace("roots: {}", &format!("roots: {roots}"));
    let served = tree.path().display();
    let text = format!(
        "host: 127.0.0.1\nroots: [{{name: workspace, path: {served}, allowed_tools: ['*']}}]\n{lines}"
    );
    program().config_text(text).wire(Transport::Http).await
}

#[tokio::test]
async fn what_the_command_token_prints_lets_its_holder_in() {
    let tree = Tree::new();
    let printed = program().arguments(["token", "ci"]).run().await.stdout;
    let (head, lines) = printed.split_at(printed.find("clients:").expect("lines of a config"));
    let token = head.lines().find_map(|line| line.strip_prefix("  "));
    let token = token.expect("a token");
    for (roots, has_root) in [("{}", false), ("{workspace: {}}", true)] {
        let wire = let_in_by(&tree, lines, roots).await;
        let told = ask(wire.http(), token).await;
        assert_eq!(told.status, 200, "{told:?}");
        assert_eq!(told.body.contains("workspace"), has_root, "{}", told.body);
        let refused = ask(wire.http(), "another-token-of-sixteen").await;
        assert_eq!(refused.status, 401);
        let hint = "with a token of clients in the configuration";
        assert!(refused.body.contains(hint), "{}", refused.body);
    }
}
