//! Lists, templates, reads, directories and completion.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use testkit::{Transport, Tree, Value, json};

use super::{Era, Peer, over_all};
use crate::files::Files;
use crate::harness::{ToolSet, program};
use crate::memory::Memory;
use crate::workspace::Workspace;

fn tree() -> Tree {
    Tree::new()
        .file("notes.md", "# Notes\nñ\n")
        .file("bytes", b"\x00\xff\x01")
        .file("dir/one.txt", "1")
        .file("dir/two.txt", "22")
        .dir("dir/sub")
        .file("odd ?#%.txt", "odd")
        .file(OsStr::from_bytes(b"not\xffutf8"), "bytes")
}

#[tokio::test]
async fn resources_are_roots_and_templates_and_are_declared() {
    let tree = tree();
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let listed = peer.ok("resources/list", json!({})).await;
            let expected = json!([{"uri": "fs://workspace/", "name": "workspace", "mimeType": "inode/directory"}]);
            assert_eq!(listed["resources"], expected);
            let templates = peer.ok("resources/templates/list", json!({})).await;
            assert_eq!(
                templates["resourceTemplates"][0]["uriTemplate"],
                "fs://workspace/{+path}"
            );
            for list in [listed, templates] {
                match peer.era {
                    Era::Older => assert!(list.get("ttlMs").is_none(), "{list}"),
                    Era::Newest => {
                        assert_eq!(list["resultType"], "complete");
                        assert_eq!(list["cacheScope"], "public");
                        assert!(list["ttlMs"].as_u64() > Some(0), "{list}");
                    }
                }
            }
            if peer.era == Era::Newest {
                let found = peer.ok("server/discover", json!({})).await;
                assert!(found["ttlMs"].as_u64() > Some(0), "{found}");
                let declared = &found["capabilities"];
                assert_eq!(declared["resources"], json!({"subscribe": true}));
                assert_eq!(declared["completions"], json!({}));
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_are_read_as_text_bytes_or_listing() {
    let tree = tree();
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let table = [
                (
                    "fs://workspace/notes.md",
                    "text/markdown",
                    "text",
                    "# Notes\nñ\n",
                ),
                (
                    "fs://workspace/bytes",
                    "application/octet-stream",
                    "blob",
                    "AP8B",
                ),
                (
                    "fs://workspace/odd%20%3F%23%25.txt",
                    "text/plain",
                    "text",
                    "odd",
                ),
                (
                    "fs://workspace/odd %3F%23%25.txt",
                    "text/plain",
                    "text",
                    "odd",
                ),
                (
                    "fs://workspace/dir/",
                    "inode/directory",
                    "text",
                    "one.txt\t1\nsub/\ntwo.txt\t2",
                ),
                (
                    "fs://workspace/dir",
                    "inode/directory",
                    "text",
                    "one.txt\t1\nsub/\ntwo.txt\t2",
                ),
            ];
            for (uri, kind, field, content) in table {
                let read = peer.ok("resources/read", json!({"uri": uri})).await;
                let expected = json!([{"uri": uri, "mimeType": kind, field: content}]);
                assert_eq!(read["contents"], expected, "{uri}");
                if peer.era == Era::Newest {
                    assert_eq!(read["ttlMs"], 0);
                    assert_eq!(read["cacheScope"], "private");
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_of_a_directory_are_listed_and_every_uri_is_read_again() {
    let tree = tree();
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let params = json!({"uri": "fs://workspace/"});
            let listed = peer.ok("resources/directory/read", params).await;
            let resources = listed["resources"].as_array().unwrap();
            assert_eq!(resources.len(), 5, "{listed}");
            assert!(listed.get("nextCursor").is_none());
            for resource in resources {
                let uri = &resource["uri"];
                assert!(uri.as_str().unwrap().is_ascii(), "{uri}");
                let read = peer.ok("resources/read", json!({"uri": uri})).await;
                let content = &read["contents"][0];
                assert_eq!(content["uri"], *uri);
                match resource["size"].as_u64() {
                    Some(size) if content["text"].is_string() => {
                        assert_eq!(content["text"].as_str().unwrap().len() as u64, size);
                    }
                    Some(_) => assert!(content["blob"].is_string(), "{read}"),
                    None => assert_eq!(resource["mimeType"], "inode/directory"),
                }
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_of_a_large_directory_come_in_pages() {
    let mut tree = Tree::new();
    for number in 0..2_300 {
        tree = tree.file(format!("f{number:04}"), "");
    }
    let mut peer = Peer::new(Workspace::setup(&tree), Transport::Stdio, Era::Newest).await;
    let (mut names, mut cursor) = (Vec::new(), None);
    for page in 0.. {
        let mut params = json!({"uri": "fs://workspace/"});
        if let Some(cursor) = cursor {
            params["cursor"] = cursor;
        }
        let listed = peer.ok("resources/directory/read", params).await;
        let resources = listed["resources"].as_array().unwrap();
        names.extend(resources.iter().map(|one| one["name"].to_string()));
        // What comes and goes in between does not disturb the rest.
        tree.write(format!("a{page}"), "");
        let Some(next) = listed.get("nextCursor") else {
            assert_eq!(page, 2);
            break;
        };
        cursor = Some(next.clone());
    }
    let expected: Vec<String> = (0..2_300)
        .map(|number| format!("\"f{number:04}\""))
        .collect();
    assert_eq!(names, expected);
}

#[tokio::test]
async fn resources_complete_a_path_as_it_is_typed() {
    let tree = tree();
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let table: [(&str, &[&str]); 6] = [
                ("no", &["notes.md", "not\u{f7ff}utf8"]),
                ("dir", &["dir/"]),
                ("dir/t", &["dir/two.txt"]),
                ("odd", &["odd %3F%23%25.txt"]),
                ("missing/x", &[]),
                ("notes.md/x", &[]),
            ];
            for (typed, expected) in table {
                let params = json!({
                    "ref": {"type": "ref/resource", "uri": "fs://workspace/{+path}"},
                    "argument": {"name": "path", "value": typed},
                });
                let completed = peer.ok("completion/complete", params).await;
                let mut values: Vec<&str> = completed["completion"]["values"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str)
                    .collect();
                values.sort_unstable();
                let mut expected = expected.to_vec();
                expected.sort_unstable();
                assert_eq!(values, expected, "{typed}");
                assert_eq!(completed["completion"]["hasMore"], false);
            }
        },
    )
    .await;
}

#[tokio::test]
async fn resources_go_by_the_allowlist_and_are_counted_and_logged_like_tools() {
    let (open, shut) = (tree(), tree());
    let setup = || {
        program()
            .root_allowing("open", open.path(), &["read_file"])
            .root_allowing("shut", shut.path(), &["list_folder"])
    };
    let mut peer = Peer::new(setup(), Transport::Http, Era::Newest).await;
    let listed = peer.ok("resources/list", json!({})).await;
    assert_eq!(listed["resources"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["resources"][0]["name"], "open");
    peer.ok("resources/read", json!({"uri": "fs://open/notes.md"}))
        .await;
    let refused = peer
        .fails("resources/read", json!({"uri": "fs://shut/notes.md"}))
        .await;
    assert_eq!(refused["code"], -32602);
    assert_eq!(refused["data"]["code"], "tool_not_allowed");
    let refused = peer
        .fails("resources/directory/read", json!({"uri": "fs://open/dir"}))
        .await;
    assert_eq!(refused["data"]["code"], "tool_not_allowed");
    let outside = peer
        .fails("resources/read", json!({"uri": "fs://open/../x"}))
        .await;
    assert_eq!(outside["data"]["code"], "path_outside_root");
    let wanted = |line: &Value| line["message"] == "violation" && line["path"] == "../x";
    let line = peer.wire.logged(wanted).await;
    assert_eq!(line["tool"], json!("resources/read"));
    assert_eq!(line["root"], json!("open"));
    let page = peer.wire.http().get("/metrics").await.body;
    let counted = page.lines().any(|line| {
        line.contains("tool=\"resources/read\"") && line.contains("ok") && line.ends_with(" 1")
    });
    assert!(counted, "{page}");
    let found = peer.ok("server/discover", json!({})).await;
    assert_eq!(
        found["capabilities"]["resources"],
        json!({}),
        "nobody may watch"
    );
    let called = peer
        .fails(
            "tools/call",
            json!({"name": "resources/read", "arguments": {}}),
        )
        .await;
    assert_eq!(called["code"], -32602, "a method is no tool");
}

#[tokio::test]
async fn resources_are_not_there_where_nothing_may_be_read() {
    let tree = tree();
    let setup = || program().root_allowing("shut", tree.path(), &["list_folder"]);
    over_all(setup, async |peer| {
        for method in ["resources/list", "resources/templates/list"] {
            assert_eq!(peer.fails(method, json!({})).await["code"], -32601);
        }
        let uri = json!({"uri": "fs://shut/notes.md"});
        assert_eq!(peer.fails("resources/read", uri).await["code"], -32601);
    })
    .await;
}

#[tokio::test]
async fn resources_of_the_other_sets_are_in_their_one_root() {
    let (files, memory) = (tree(), tree());
    for setup in [Files::setup(&files), Memory::setup(&memory)] {
        let mut peer = Peer::new(setup, Transport::Stdio, Era::Older).await;
        let listed = peer.ok("resources/list", json!({})).await;
        let uri = listed["resources"][0]["uri"].as_str().unwrap().to_owned();
        let uri = format!("{uri}notes.md");
        let read = peer.ok("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], "# Notes\nñ\n", "{listed}");
        let other = json!({"uri": "fs://other/notes.md"});
        let other = peer.fails("resources/read", other).await;
        assert_eq!(other["code"], -32002, "{other}");
    }
}

#[tokio::test]
async fn a_search_that_is_cut_short_links_to_the_file_where_it_stopped() {
    let tree = Tree::new()
        .file("a b.txt", "hit\nhit\n")
        .file("z.txt", "hit\n");
    over_all(
        || Workspace::setup(&tree),
        async |peer| {
            let grep = |most: u64| {
                json!({"name": "grep", "arguments":
                    {"root": "workspace", "path": ".", "pattern": "hit", "max_results": most}})
            };
            let cut = peer.ok("tools/call", grep(1)).await;
            assert_eq!(
                cut["content"][1],
                json!({"type": "resource_link", "uri": "fs://workspace/a%20b.txt", "name": "a b.txt"}),
                "{cut}"
            );
            let uri = &cut["content"][1]["uri"];
            let read = peer.ok("resources/read", json!({"uri": uri})).await;
            assert_eq!(read["contents"][0]["text"], "hit\nhit\n");
            let whole = peer.ok("tools/call", grep(10)).await;
            assert_eq!(whole["content"].as_array().map(Vec::len), Some(1));
        },
    )
    .await;
}

#[tokio::test]
async fn a_root_whose_files_may_not_be_read_is_not_linked_to() {
    let tree = Tree::new().file("a.txt", "hit\nhit\n");
    over_all(
        || {
            let allowed = json!({"allowed_tools": ["grep", "list_folder"]});
            program().root_with("workspace", tree.path(), allowed)
        },
        async |peer| {
            let grep = json!({"name": "grep", "arguments":
                {"root": "workspace", "path": ".", "pattern": "hit", "max_results": 1}});
            let cut = peer.ok("tools/call", grep).await;
            assert_eq!(cut["structuredContent"]["truncated"], true);
            assert_eq!(cut["content"].as_array().map(Vec::len), Some(1), "{cut}");
        },
    )
    .await;
}
