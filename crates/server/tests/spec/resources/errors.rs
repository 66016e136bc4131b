//! What is wrong with a request is said in one line each.

use testkit::{Tree, json};

use super::{Era, Peer, over_all};
use crate::harness::{ToolSet, program};
use crate::workspace::Workspace;

/// The error of a request that has to fail, in one line that says this.
async fn says(peer: &mut Peer, method: &str, params: testkit::Value, expected: &str) -> i64 {
    let error = peer.fails(method, params.clone()).await;
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(expected) && !message.contains('\n'),
        "{method} {params}: {error}"
    );
    error["code"].as_i64().unwrap()
}

#[tokio::test]
async fn resources_say_what_is_wrong_with_a_uri() {
    let tree = Tree::new().file("f", "x").link("out", "/etc/passwd");
    over_all(
        || Workspace::setup(&tree).set("max_full_read_size", 1000),
        async |peer| {
            tree.write("large", "x".repeat(5000));
            let table = [
                (json!({}), "uri (string)"),
                (json!({"uri": 1}), "uri (string)"),
                (json!({"uri": ""}), "fs://ROOT/PATH"),
                (json!({"uri": "file:///etc/passwd"}), "fs://ROOT/PATH"),
                (json!({"uri": "fs://"}), "names no root"),
                (json!({"uri": "fs://workspace/a?b"}), "%3F"),
                (json!({"uri": "fs://workspace/a#b"}), "%23"),
                (json!({"uri": "fs://workspace/{+path}"}), "template"),
                (
                    json!({"uri": "fs://workspace/a%2"}),
                    "two hexadecimal digits",
                ),
                (json!({"uri": "fs://workspace/%ff"}), "not UTF-8"),
                (json!({"uri": "fs://workspace/a%2Fb"}), "slash"),
                (json!({"uri": "fs://workspace/a%00b"}), "NUL"),
                (json!({"uri": "fs://workspace/../f"}), "outside"),
                (json!({"uri": "fs://workspace/out"}), "outside"),
                (json!({"uri": "fs://workspace/large"}), "too large"),
            ];
            for (params, expected) in table {
                // A header cannot be compared with what is no text.
                let code = says(peer, "resources/read", params, expected).await;
                assert_eq!(code, -32602, "{expected}");
            }
            let missing = match peer.era {
                Era::Older => -32002,
                Era::Newest => -32602,
            };
            for (uri, expected) in [
                ("fs://workspace/missing", "not found"),
                ("fs://other/f", "unknown root: other; roots: workspace"),
            ] {
                let params = json!({"uri": uri});
                let code = says(peer, "resources/read", params, expected).await;
                assert_eq!(code, missing, "{uri}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_say_what_is_wrong_with_cursors_templates_and_arguments() {
    let tree = Tree::new().file("f", "x");
    let completion = |uri: &str, name: &str| json!({"ref": {"type": "ref/resource", "uri": uri}, "argument": {"name": name, "value": ""}});
    let table = [
        ("resources/list", json!({"cursor": "x"}), "one page"),
        (
            "resources/templates/list",
            json!({"cursor": "x"}),
            "one page",
        ),
        (
            "resources/directory/read",
            json!({"uri": "fs://workspace/", "cursor": "x"}),
            "begin again without one",
        ),
        (
            "resources/directory/read",
            json!({"uri": "fs://workspace/", "cursor": 7}),
            "cursor has to be a string",
        ),
        (
            "resources/directory/read",
            json!({"uri": "fs://workspace/f"}),
            "not a directory",
        ),
        ("resources/directory/read", json!({}), "uri (string)"),
        ("completion/complete", json!({}), "ref (object"),
        (
            "completion/complete",
            completion("fs://workspace/{path}", "path"),
            "fs://ROOT/{+path}",
        ),
        (
            "completion/complete",
            completion("https://{+path}", "path"),
            "fs://ROOT/PATH",
        ),
        (
            "completion/complete",
            completion("fs://workspace/{+path}", "name"),
            "what can be completed is path",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            "Unknown prompt: x",
        ),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/else", "name": "x"}, "argument": {"name": "a", "value": ""}}),
            "Unknown ref type",
        ),
    ];
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            for (method, params, expected) in &table {
                let code = says(peer, method, params.clone(), expected).await;
                assert_eq!(code, -32602, "{method}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_have_the_rate_of_tools() {
    let tree = Tree::new().file("f", "x");
    let setup = || {
        program()
            .root("workspace", tree.path())
            .set("limits.rate", json!({"per_second": 1, "burst": 2}))
    };
    over_all(setup, async |peer| {
        let read = json!({"uri": "fs://workspace/f"});
        let mut refused = None;
        for _ in 0..100 {
            let answer = peer.ask("resources/read", read.clone()).await;
            refused = answer.get("error").cloned();
            if refused.is_some() {
                break;
            }
        }
        let refused = refused.expect("no client may read so often");
        assert_eq!(refused["code"], -32603, "{refused}");
        assert_eq!(refused["data"]["code"], "rate_limited");
        assert!(refused["data"]["retryAfterMs"].as_u64() > Some(0));
    })
    .await;
}
