//! Access tokens of an issuer: who is let in, as whom, and what everybody else is told.

use testkit::{Http, Reply, Setup, Transport, Tree, Value, json};

use super::issuer::{ISSUER, KeyEndpoint, SERVER, SigningKey, base64, claims, message, now, with};
use super::list_roots;
use super::reload::Events;
use super::tls::certified;
use crate::harness::ToolSet;
use crate::harness::message::initialize;
use crate::workspace::Workspace;

pub(super) const SCOPE: &str = "files:read";
const THERE: &str =
    "resource_metadata=\"https://files.example.org/.well-known/oauth-protected-resource/mcp\"";

fn setup(tree: &Tree, keys: (&str, Value)) -> Setup {
    let mut oauth = json!({
        "issuer": ISSUER, "public_url": SERVER, "scopes": {(SCOPE): "readers"}
    });
    oauth[keys.0] = keys.1;
    Workspace::setup(tree).set("auth.oauth", oauth)
}

pub(super) fn of_issuer(tree: &Tree, issuer: &KeyEndpoint) -> Setup {
    setup(tree, ("jwks_uri", json!(issuer.url)))
}

async fn ask(http: &Http, token: &str) -> Reply {
    let value = format!("Bearer {token}");
    http.post("/mcp", &[("authorization", &value)], &list_roots())
        .await
}

fn challenge(reply: &Reply) -> &str {
    reply.header("www-authenticate").unwrap_or_default()
}

#[tokio::test]
async fn clients_find_the_issuer_by_themselves() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    let http = wire.http();
    let refused = http.post("/mcp", &[], &list_roots()).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(
        challenge(&refused),
        format!("Bearer {THERE}, scope=\"{SCOPE}\"")
    );
    for (path, resource) in [
        ("", ""),
        ("/mcp", "/mcp"),
        ("/mcp/workspace", "/mcp/workspace"),
    ] {
        let found = http
            .get(&format!("/.well-known/oauth-protected-resource{path}"))
            .await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_eq!(found.header("content-type"), Some("application/json"));
        let expected = json!({
            "resource": format!("{SERVER}{resource}"),
            "resource_name": "mcp-filesystem",
            "authorization_servers": [ISSUER],
            "scopes_supported": [SCOPE],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!(found.json(), expected);
    }
    let unknown = http
        .get("/.well-known/oauth-protected-resource/mcp/guide")
        .await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert_eq!(http.get("/health").await.status, 200);
    assert_eq!(http.get("/metrics").await.status, 401);
    let query = format!("/mcp?access_token={}", key.token(&claims("alice", SCOPE)));
    let in_query = http.post(&query, &[], &list_roots()).await;
    assert_eq!(
        in_query.status, 401,
        "a token in the address would end up in logs"
    );
}

#[tokio::test]
async fn a_good_token_lets_its_holder_in_under_the_client_s_name() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let setup = of_issuer(&tree, &issuer).arguments(["--log-level", "trace"]);
    let wire = setup.wire(Transport::Http).await;
    let token = key.token(&claims("alice", "openid files:read"));
    let reply = ask(wire.http(), &token).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let line = wire.logged(|line| line["tool"] == "list_roots").await;
    let client = line["client"].as_str().unwrap();
    assert!(client.ends_with("(readers:alice)"), "{client}");
    let odd = key.token(&claims("eve (root)\u{1b}[2J", SCOPE));
    assert_eq!(ask(wire.http(), &odd).await.status, 200);
    let signature = token.rsplit('.').next().unwrap().to_owned();
    let log = wire.stop().await.stderr.join("\n");
    assert!(
        !log.contains(&signature) && !log.contains("eyJ"),
        "a token is in the log"
    );
    assert!(!log.contains("eve (root)"), "{log}");
}

#[tokio::test]
async fn every_bad_token_is_refused_and_told_why() {
    let (tree, key, other) = (Tree::new(), SigningKey::new("a"), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    let good = claims("alice", SCOPE);
    let none = with(key.header(), "alg", "none");
    let hmac = message(&with(key.header(), "alg", "HS256"), &good);
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.public());
    let forged = base64(ring::hmac::sign(&secret, hmac.as_bytes()));
    let own_key = with(other.header(), "jwk", other.jwk());
    let bad = [
        (
            key.token(&with(good.clone(), "exp", now() - 120)),
            "the token has expired",
        ),
        (
            key.token(&with(good.clone(), "nbf", now() + 120)),
            "the token is not valid yet",
        ),
        (
            key.token(&with(good.clone(), "aud", "https://other.example")),
            "for another audience",
        ),
        (
            key.token(&with(good.clone(), "aud", format!("{SERVER}/mcp/guide"))),
            "for another audience",
        ),
        (
            key.token(&with(good.clone(), "iss", "https://evil.example")),
            "of another issuer",
        ),
        (
            format!("{}.", message(&none, &good)),
            "algorithm is not accepted",
        ),
        (format!("{hmac}.{forged}"), "algorithm is not accepted"),
        (other.token(&good), "signature is wrong"),
        (other.token_with(&own_key, &good), "signature is wrong"),
        (
            key.token_with(&with(key.header(), "kid", "b"), &good),
            "no key with the token's key id",
        ),
        (
            key.token_with(&with(key.header(), "kid", "../a\u{0}' or 1"), &good),
            "no key with",
        ),
        (
            key.token_with(&with(key.header(), "x", "x".repeat(30_000)), &good),
            "longer than",
        ),
        ("not-a-token".to_owned(), "nor a JWT"),
    ];
    for (token, words) in bad {
        let reply = ask(wire.http(), &token).await;
        assert_eq!(reply.status, 401, "{words}: {reply:?}");
        let told = challenge(&reply);
        assert!(
            told.starts_with("Bearer error=\"invalid_token\", error_description=\""),
            "{told}"
        );
        assert!(
            told.contains(words) && told.contains(THERE),
            "{words}: {told}"
        );
    }
    let huge = "x".repeat(200_000);
    assert_eq!(ask(wire.http(), &huge).await.status, 431);
    assert_eq!(ask(wire.http(), &key.token(&good)).await.status, 200);
    // The start's fetch, and the one that unknown keys caused.
    assert_eq!(issuer.times_asked(), 2);
}

#[tokio::test]
async fn a_valid_token_that_matches_no_client_is_forbidden() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    for scope in ["", "openid", "files:readonly", "FILES:READ"] {
        let reply = ask(wire.http(), &key.token(&claims("alice", scope))).await;
        assert_eq!(reply.status, 403, "{scope}: {reply:?}");
        let told = challenge(&reply);
        let expected = format!("Bearer error=\"insufficient_scope\", {THERE}, scope=\"{SCOPE}\"");
        assert_eq!(told, expected);
        assert!(reply.body.contains("belongs to no client"), "{reply:?}");
    }
}

#[tokio::test]
async fn a_token_for_one_endpoint_is_good_there_alone() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let setup = of_issuer(&tree, &issuer).set("toolsets", json!(["workspace", "files"]));
    let wire = setup.wire(Transport::Http).await;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let status = async |audience: &str, path: &str| {
        let token = key.token(&with(
            claims("alice", SCOPE),
            "aud",
            format!("{SERVER}{audience}"),
        ));
        let value = format!("Bearer {token}");
        let reply = wire
            .http()
            .post(path, &[("authorization", &value)], &ping)
            .await;
        reply.status
    };
    for (audience, path, expected) in [
        ("", "/mcp", 200),
        ("/", "/mcp/files", 200),
        ("/mcp", "/mcp", 200),
        ("/mcp", "/mcp/workspace", 200),
        ("/mcp/workspace", "/mcp", 200),
        ("/mcp/files", "/mcp/files", 200),
        ("/mcp/files", "/mcp", 401),
        ("/mcp", "/mcp/files", 401),
        ("/mcp/files", "/metrics", 401),
    ] {
        assert_eq!(
            status(audience, path).await,
            expected,
            "{audience} at {path}"
        );
    }
}

#[tokio::test]
async fn keys_are_rotated_and_kept_when_the_issuer_fails() {
    let tree = Tree::new();
    let [first, second, third] = ["1", "2", "3"].map(SigningKey::new);
    let issuer = KeyEndpoint::start(&[&first]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    let status = async |key: &SigningKey| {
        let token = key.token(&claims("alice", SCOPE));
        ask(wire.http(), &token).await.status
    };
    assert_eq!(status(&first).await, 200);
    assert_eq!(issuer.times_asked(), 1, "at the start");
    issuer.rotate(&[&first, &second]);
    assert_eq!(status(&second).await, 200);
    assert_eq!(status(&first).await, 200);
    assert_eq!(issuer.times_asked(), 2);
    // Within a minute nobody makes the server ask again, and it goes on with what it has.
    issuer.rotate(&[]);
    for _ in 0..20 {
        assert_eq!(status(&third).await, 401);
    }
    assert_eq!(status(&second).await, 200);
    assert_eq!(issuer.times_asked(), 2);
}

#[tokio::test]
async fn an_issuer_that_fails_keeps_the_keys_that_are_there() {
    let (tree, key, unknown) = (Tree::new(), SigningKey::new("1"), SigningKey::new("2"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    let good = key.token(&claims("alice", SCOPE));
    assert_eq!(ask(wire.http(), &good).await.status, 200);
    issuer.rotate(&[]);
    let token = unknown.token(&claims("alice", SCOPE));
    assert_eq!(ask(wire.http(), &token).await.status, 401);
    let failed = wire
        .logged(|line| line["level"] == "WARN" && line["kept"] == 1)
        .await;
    assert!(
        failed["reason"].as_str().unwrap().contains("500"),
        "{failed}"
    );
    assert_eq!(ask(wire.http(), &good).await.status, 200);
}

#[tokio::test]
async fn a_server_starts_before_its_issuer_does() {
    let (tree, key) = (Tree::new(), SigningKey::new("1"));
    let issuer = KeyEndpoint::start(&[]).await;
    let wire = of_issuer(&tree, &issuer).wire(Transport::Http).await;
    wire.logged(|line| line["level"] == "WARN" && line["kept"] == 0)
        .await;
    let token = key.token(&claims("alice", SCOPE));
    let early = ask(wire.http(), &token).await;
    assert_eq!(early.status, 503, "{early:?}");
    assert!(early.header("retry-after").is_some(), "{early:?}");
    assert_eq!(
        wire.http().post("/mcp", &[], &list_roots()).await.status,
        401
    );
}

/// The authorities are read before the process locks itself in.
#[tokio::test]
async fn keys_are_fetched_over_https_from_an_issuer_that_is_trusted() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let ((_, files), (_, others)) = (certified(), certified());
    let issuer = KeyEndpoint::start_encrypted(&[&key], &files).await;
    let token = key.token(&claims("alice", SCOPE));
    for (trusted, status) in [(&files, 200), (&others, 503)] {
        let authorities = trusted.join("cert.pem");
        let setup = of_issuer(&tree, &issuer)
            .variable("SSL_CERT_FILE", authorities.to_str().expect("text"));
        let wire = setup.wire(Transport::Http).await;
        let reply = ask(wire.http(), &token).await;
        assert_eq!(reply.status, status, "{reply:?}");
    }
}

#[tokio::test]
async fn a_file_of_keys_is_read_again_on_hangup() {
    let (tree, files) = (Tree::new(), Tree::new());
    let [old, new] = ["old", "new"].map(SigningKey::new);
    let path = files.join("keys.json");
    let write = |key: &SigningKey| {
        let next = files.join("next");
        std::fs::write(&next, json!({"keys": [key.jwk()]}).to_string()).unwrap();
        std::fs::rename(next, &path).unwrap();
    };
    write(&old);
    let wire = setup(&tree, ("jwks_file", json!(path)))
        .wire(Transport::Http)
        .await;
    let status = async |key: &SigningKey| {
        ask(wire.http(), &key.token(&claims("alice", SCOPE)))
            .await
            .status
    };
    assert_eq!(status(&old).await, 200);
    assert_eq!(status(&new).await, 401);
    write(&new);
    wire.reload();
    wire.logged(|line| {
        line["message"] == "the configuration, tokens and certificates were read again"
    })
    .await;
    assert_eq!(status(&old).await, 401);
    assert_eq!(status(&new).await, 200);
    std::fs::write(&path, "{}").unwrap();
    wire.reload();
    wire.logged(|line| line["level"] == "ERROR").await;
    assert_eq!(status(&new).await, 200, "the old ones stay in force");
}

/// Nothing of what was read is in force if anything else cannot be read.
#[tokio::test]
async fn a_mistake_elsewhere_keeps_the_old_keys() {
    let (tree, [old, new]) = (Tree::new(), ["old", "new"].map(SigningKey::new));
    let key_file = |key: &SigningKey| json!({"keys": [key.jwk()]}).to_string();
    let files = Tree::new()
        .file("keys.json", key_file(&old))
        .file("tokens", "alpha-1-alpha-1-alpha\n");
    let good = setup(&tree, ("jwks_file", json!(files.join("keys.json"))))
        .set("server.bearer_tokens_file", json!(files.join("tokens")));
    let wire = good.clone().wire(Transport::Http).await;
    let status = async |key: &SigningKey| {
        let token = key.token(&claims("alice", SCOPE));
        ask(wire.http(), &token).await.status
    };
    files.write("keys.json", key_file(&new));
    files.write("tokens", "short\n");
    let lines = wire.reconfigure(&good).await;
    let has_failed = |line: &Value| line["level"] == "ERROR";
    assert!(lines.iter().any(has_failed), "{lines:?}");
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    let missing = tree.join("not there");
    files.write("tokens", "beta-22-beta-22-beta\n");
    let lines = wire.reconfigure(&good.clone().root("gone", &missing)).await;
    assert!(lines.iter().any(has_failed), "{lines:?}");
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    assert_eq!(ask(wire.http(), "beta-22-beta-22-beta").await.status, 401);
    files.write("keys.json", "{}");
    let lines = wire.reconfigure(&good).await;
    assert!(lines.iter().any(has_failed), "{lines:?}");
    assert_eq!(ask(wire.http(), "beta-22-beta-22-beta").await.status, 401);
    files.write("keys.json", key_file(&new));
    wire.reconfigure(&good).await;
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    assert_eq!(ask(wire.http(), "beta-22-beta-22-beta").await.status, 200);
}

/// A stream of a session, and one that listens outside of any.
async fn streams(http: &Http, token: &str) -> [Events; 2] {
    let token = format!("Bearer {token}");
    let begun = http
        .post(
            "/mcp",
            &[("authorization", &token)],
            &initialize(&json!({})),
        )
        .await;
    let session = begun
        .header("mcp-session-id")
        .expect("a session")
        .to_owned();
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-session-id", &session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let events = Events::open(http, "GET", &headers, "").await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let listen = json!({"jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen",
        "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}});
    let headers = [
        ("authorization", token.as_str()),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "subscriptions/listen"),
    ];
    let mut listening = Events::open(http, "POST", &headers, &listen.to_string()).await;
    listening.next().await.expect("an acknowledgement");
    [events, listening]
}

/// Reads on to the end, which has to come.
async fn end(streams: [Events; 2]) {
    for mut stream in streams {
        while stream.next().await.is_some() {}
    }
}

#[tokio::test]
async fn streams_end_with_the_token_and_with_what_it_stands_for() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let issuer = KeyEndpoint::start(&[&key]).await;
    let oauth = |scopes: Value| json!({"issuer": ISSUER, "public_url": SERVER, "jwks_uri": issuer.url, "scopes": scopes});
    let with_scopes = |scopes: Value| {
        Workspace::setup(&tree)
            .set("server.sessions", "on")
            .set("auth.oauth", oauth(scopes))
    };
    let with_subject = |subject: &str| {
        let people =
            json!({"name": "people", "oauth": {"subject": subject}, "roots": {"workspace": {}}});
        with_scopes(json!({})).set("clients", json!([people]))
    };
    let token = key.token(&claims("alice", SCOPE));
    // Callers that are no named client.
    let wire = with_scopes(json!({(SCOPE): "readers"}))
        .wire(Transport::Http)
        .await;
    let open = streams(wire.http(), &token).await;
    wire.reconfigure(&with_scopes(json!({"files:write": "readers"})))
        .await;
    end(open).await;
    assert_eq!(ask(wire.http(), &token).await.status, 403);
    // One that is named, and stays with another subject.
    let wire = with_subject("alice").wire(Transport::Http).await;
    let open = streams(wire.http(), &token).await;
    wire.reconfigure(&with_subject("bob")).await;
    end(open).await;
    // Both clocks may differ by half a minute.
    wire.reconfigure(&with_subject("alice")).await;
    let short = key.token(&with(claims("alice", SCOPE), "exp", now() - 28));
    let open = streams(wire.http(), &short).await;
    end(open).await;
    let told = ask(wire.http(), &token).await;
    assert_eq!(
        told.status, 400,
        "it is let in, without a session: {told:?}"
    );
    let mut program = with(claims("x", SCOPE), "client_id", "alice");
    program.as_object_mut().expect("claims").remove("sub");
    let told = ask(wire.http(), &key.token(&program)).await;
    assert_eq!(told.status, 403, "a program is no subject: {told:?}");
}

#[tokio::test]
async fn the_operator_s_own_tokens_work_beside_it() {
    let (tree, key) = (Tree::new(), SigningKey::new("a"));
    let tokens = Tree::new().file("tokens", "alpha-1-alpha-1-alpha\n");
    let issuer = KeyEndpoint::start(&[&key]).await;
    let setup =
        of_issuer(&tree, &issuer).set("server.bearer_tokens_file", json!(tokens.join("tokens")));
    let wire = setup.wire(Transport::Http).await;
    assert_eq!(ask(wire.http(), "alpha-1-alpha-1-alpha").await.status, 200);
    assert_eq!(
        ask(wire.http(), &key.token(&claims("alice", SCOPE)))
            .await
            .status,
        200
    );
    let other = ask(wire.http(), "alpha-1-alpha-1-alphb").await;
    assert!(
        other.status == 401 && challenge(&other).contains(THERE),
        "{other:?}"
    );
}

#[tokio::test]
async fn mistakes_are_errors_of_the_start() {
    let tree = Tree::new();
    let missing = Tree::new().join("no-keys.json");
    let cases = [
        (
            json!({"public_url": SERVER, "jwks_uri": "https://a.example"}),
            "auth.oauth.issuer: missing",
        ),
        (
            json!({"issuer": ISSUER, "jwks_uri": "https://a.example"}),
            "auth.oauth.public_url: missing",
        ),
        (
            json!({"issuer": ISSUER, "public_url": SERVER}),
            "either jwks_uri",
        ),
        (
            json!({"issuer": ISSUER, "public_url": SERVER, "jwks_uri": "https://a.example", "jwks_file": "x"}),
            "either jwks_uri",
        ),
        (
            json!({"issuer": ISSUER, "public_url": SERVER, "jwks_uri": "http://a.example/keys"}),
            "plain http only for this machine",
        ),
        (
            json!({"issuer": ISSUER, "public_url": SERVER, "jwks_file": missing}),
            "auth.oauth.jwks_file",
        ),
    ];
    for (oauth, words) in cases {
        let setup = Workspace::setup(&tree).set("auth.oauth", oauth);
        let ended = setup.refuse(Transport::Http).await;
        let told = ended.stderr.join("\n");
        assert!(
            ended.code == Some(1) && told.contains(words),
            "{words}: {told}"
        );
    }
}
