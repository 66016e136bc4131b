//! `guide_request_file`.

use testkit::json;

use super::set::{Agent, Guide, PLAIN, asked, tree};
use crate::harness::ToolSet;

#[tokio::test]
async fn guide_bridge_04_read_file_content() {
    asked(
        PLAIN,
        || Agent::saying("# Plan\n"),
        async |guide, agent| {
            let arguments = json!({"path": "docs/plan.md"});
            let data = guide.data("guide_request_file", arguments.clone()).await;
            assert_eq!(data["content"], "# Plan\n");
            assert_eq!(data["source"], "client");
            let prompts = agent.prompts();
            assert!(
                prompts[0].contains(r#"Read the file "docs/plan.md" of the project"#),
                "{prompts:?}"
            );
            assert!(
                prompts[0].contains("guide_cache_file"),
                "it may be handed over by tool"
            );
            let again = guide.data("guide_request_file", arguments).await;
            assert_eq!(again["source"], "cache");
            assert_eq!(agent.prompts().len(), 1);
            guide
                .fails("security", "guide_request_file", json!({"path": "secret"}))
                .await;
            assert_eq!(
                agent.prompts().len(),
                1,
                "nobody is asked for what is not allowed"
            );
        },
    )
    .await;
}

#[tokio::test]
async fn guide_bridge_05_read_file_with_encoding() {
    let agent = || {
        Agent::new(|prompt| {
            Ok(match prompt {
                prompt if prompt.contains("docs/text") => "テ".to_owned(),
                // 0xff is not Shift JIS.
                prompt if prompt.contains("base64") => "/0E=".to_owned(),
                _ => "Encoding error: \"docs/odd\"".to_owned(),
            })
        })
    };
    asked(PLAIN, agent, async |guide, agent| {
        let arguments = json!({"path": "docs/text", "encoding": "shift_jis"});
        let data = guide.data("guide_request_file", arguments).await;
        assert_eq!(data["content"], "テ");
        assert_eq!(data["encoding"], "shift_jis");
        let prompt = &agent.prompts()[0];
        assert!(
            prompt.contains("shift_jis, then utf-8, then windows-1252"),
            "{prompt}"
        );
        // What the agent cannot decode is asked for in bytes and decoded by the server, with fallbacks.
        let arguments = json!({"path": "docs/odd", "encoding": "shift_jis"});
        let reply = guide.ok("guide_request_file", arguments).await;
        assert_eq!(reply["data"]["content"], "ÿA");
        assert_eq!(reply["data"]["encoding"], "windows-1252");
        let warning = reply["warnings"][0].as_str().unwrap();
        assert!(
            warning.contains("shift_jis") && warning.contains("windows-1252"),
            "{warning}"
        );
        assert_eq!(agent.prompts().len(), 3);
        let unknown = json!({"path": "docs/text", "encoding": "klingon"});
        guide
            .fails("validation", "guide_request_file", unknown)
            .await;
    })
    .await;
}

#[tokio::test]
async fn guide_bridge_06_read_binary_file() {
    asked(
        PLAIN,
        || Agent::saying("AP8B/g=="),
        async |guide, agent| {
            let arguments = json!({"path": "docs/x.bin", "binary": true});
            let data = guide.data("guide_request_file", arguments).await;
            assert_eq!(data["content"], "AP8B/g==");
            assert_eq!(data["binary"], true);
            assert_eq!(data["metadata"]["size"], 4);
            assert!(
                agent.prompts()[0].contains("base64"),
                "{:?}",
                agent.prompts()
            );
        },
    )
    .await;
    asked(
        PLAIN,
        || Agent::saying("not base64"),
        async |guide, _| {
            let arguments = json!({"path": "docs/x.bin", "binary": true});
            guide
                .fails("validation", "guide_request_file", arguments)
                .await;
            assert_eq!(guide.cache_figures().await["entries"], 0);
        },
    )
    .await;
}

#[tokio::test]
async fn the_byte_order_mark_of_utf_16_decides_and_is_no_text() {
    Guide::both(tree, async |guide| {
        // "a" after the mark of each byte order.
        for (base64, encoding) in [("//5hAA==", "utf-16le"), ("/v8AYQ==", "utf-16be")] {
            for named in ["utf-16", "utf-16le", "utf-16be"] {
                let metadata = json!({"encoding": named});
                let file = json!({"path": "docs/a", "content": base64, "binary": true, "metadata": metadata});
                guide.data("guide_cache_file", file).await;
                let reply = guide
                    .ok("guide_request_file", json!({"path": "docs/a"}))
                    .await;
                let data = &reply["data"];
                assert_eq!(data["content"], "a");
                assert_eq!(data["encoding"], json!(encoding));
                assert!(reply.get("warnings").is_none(), "{reply}");
            }
        }
    })
    .await;
}
