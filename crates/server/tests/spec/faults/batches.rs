//! Calls for several files: all of them are changed or none, whatever becomes of the client, and each refusal is recorded.

use std::time::Duration;

use testkit::rmcp::model::{CallToolRequest, CallToolRequestParams};
use testkit::rmcp::service::PeerRequestOptions;
use testkit::{Server, Transport, Tree, Value, json};

use crate::harness::ToolSet;
use crate::harness::machine::{call, ok};
use crate::workspace::Workspace;

/// How many files a call is for.
const FILES: usize = 120;

fn name(number: usize) -> String {
    format!("f{number:03}")
}

/// Each tool that changes several files, with the arguments that change all of them from `old` to `new`.
fn batches() -> [(&'static str, Value); 3] {
    let each =
        |make: &dyn Fn(String) -> Value| (0..FILES).map(|n| make(name(n))).collect::<Value>();
    let patch: String = (0..FILES)
        .map(|n| format!("--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-old\n+new\n", name(n)))
        .collect();
    [
        (
            "write_file",
            json!({"files": each(&|path| json!({"path": path, "content": "new\n"}))}),
        ),
        (
            "edit_file",
            json!({"edits": each(&|path| json!({"path": path, "old": "old", "new": "new"}))}),
        ),
        ("patch_file", json!({"patch": patch})),
    ]
}

async fn begin_and_cancel(server: &Server, tool: &'static str, arguments: Value, after: Duration) {
    let arguments = Workspace::complete(tool, arguments);
    let arguments = arguments.as_object().expect("an object").clone();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let request = CallToolRequest::new(params).into();
    let options = PeerRequestOptions::no_options();
    let sent = server.client().send_cancellable_request(request, options);
    let call = sent.await.expect("a call");
    tokio::time::sleep(after).await;
    call.cancel(None).await.expect("a connection");
}

#[tokio::test]
async fn faults_a_cancelled_batch_changes_all_files_or_none() {
    let tree = Tree::new();
    let server = Workspace::setup(&tree).start(Transport::Stdio).await;
    for (tool, arguments) in batches() {
        for milliseconds in [1, 10, 25, 40, 60, 90] {
            for number in 0..FILES {
                std::fs::write(tree.join(name(number)), "old\n").expect("a file");
            }
            let after = Duration::from_millis(milliseconds);
            begin_and_cancel(&server, tool, arguments.clone(), after).await;
            // It has its turn when the cancelled call has ended.
            let last = json!({"path": name(FILES - 1), "content": "last\n"});
            ok(&server, "write_file", last).await;
            let read = |number| std::fs::read_to_string(tree.join(name(number)));
            let changed =
                (0..FILES - 1).filter(|number| read(*number).is_ok_and(|text| text == "new\n"));
            let changed = changed.count();
            assert!(
                changed == 0 || changed == FILES - 1,
                "{tool}: {changed} of {FILES} are changed"
            );
        }
    }
}

#[tokio::test]
async fn faults_what_is_refused_in_a_batch_is_recorded() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("a", "text");
        let server = Workspace::setup(&tree).start(transport).await;
        ok(&server, "read_file", json!({"paths": ["a", "../outside"]})).await;
        let line = server.logged(|line| line["message"] == "violation").await;
        assert_eq!(line["path"], "../outside");
        assert_eq!(line["error_code"], "path_outside_root");
    })
    .await;
}

#[tokio::test]
async fn faults_no_name_forges_a_line_of_a_message() {
    testkit::over_both(async |transport| {
        let tree = Tree::new().file("config\n[ok].yaml", "text");
        let server = Workspace::setup(&tree).start(transport).await;
        let missing = json!({"path": "config\n[ok].yam"});
        for arguments in [missing, json!({"paths": ["config\n[ok].yam"]})] {
            let text = call(&server, "read_file", arguments).await.text;
            assert!(text.contains("did you mean"), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    })
    .await;
}
