//! The specification's scenarios.

use testkit::{Tree, json};

use super::set::{Memory, error, escape};
use crate::harness::ToolSet;

#[tokio::test]
async fn memory_scenario_1_creation_and_retrieval() {
    Memory::both(Tree::new, async |memory| {
        let content = "# Team Meeting\n\nDiscuss Q1 goals";
        memory.create("notes/meeting.md", content).await;
        assert_eq!(memory.tree().text("notes/meeting.md"), content);
        // The specification counts 36 bytes; there are 32.
        let expected = json!({"type": "file", "content": content, "encoding": "utf-8", "size": 32});
        assert_eq!(memory.view("notes/meeting.md").await, expected);
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_2_text_replacement() {
    let tree = || {
        Tree::new().file(
            "project.md",
            "# Project Alpha\nStatus: Planning\nBudget: $50k\n",
        )
    };
    Memory::both(tree, async |memory| {
        let (old, new) = ("Status: Planning", "Status: In Progress");
        memory.replace("project.md", old, new).await;
        let expected = "# Project Alpha\nStatus: In Progress\nBudget: $50k\n";
        assert_eq!(memory.tree().text("project.md"), expected);
        assert_eq!(memory.tree().listing().len(), 1, "no temporary files");
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_3_duplicate_creation_fails() {
    let tree = || Tree::new().file("config.json", "{\"version\": 1}");
    Memory::both(tree, async |memory| {
        let create = json!({"path": "config.json", "content": "{}", "encoding": "utf-8"});
        assert_eq!(
            memory.failure("create", create).await,
            error(
                "file_exists",
                "File already exists: config.json",
                "config.json"
            )
        );
        assert_eq!(memory.tree().text("config.json"), "{\"version\": 1}");
        assert_eq!(memory.tree().listing().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_4_deep_path() {
    Memory::both(Tree::new, async |memory| {
        let path = "nodes/projects/archive/old-project.md";
        memory.create(path, "# Archived").await;
        assert_eq!(memory.tree().text(path), "# Archived");
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_5_directory_listing() {
    let tree = || {
        let names = ["proj_003.md", "proj_001.md", "proj_002.md", ".hidden"];
        names.iter().fold(Tree::new(), |tree, name| {
            tree.file(format!("nodes/{name}"), "")
        })
    };
    Memory::both(tree, async |memory| {
        let entries = ["proj_001.md", "proj_002.md", "proj_003.md"];
        let expected = json!({"type": "directory", "entries": entries});
        assert_eq!(memory.view("nodes/").await, expected);
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_6_path_security() {
    Memory::both(Tree::new, async |memory| {
        let path = "../../../etc/passwd";
        let failure = memory.failure("view", json!({"path": path})).await;
        assert_eq!(failure, escape(path));
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_7_a_string_that_is_not_unique() {
    let content = "TODO: finish this\nTODO: review that\n";
    Memory::both(
        || Tree::new().file("notes.md", content),
        async |memory| {
            let replace = json!({"path": "notes.md", "old_str": "TODO", "new_str": "DONE"});
            let failure = memory.failure("str_replace", replace).await;
            assert_eq!(
                failure,
                json!({
                    "code": "string_not_unique", "message": "String appears 2 times, must be unique",
                    "path": "notes.md", "lines": [1, 2],
                })
            );
            assert_eq!(memory.tree().text("notes.md"), content);
        },
    )
    .await;
}

#[tokio::test]
async fn memory_scenario_8_symlink_escape() {
    let tree = || Tree::new().link("malicious-link", "/etc/passwd");
    Memory::both(tree, async |memory| {
        let failure = memory
            .failure("view", json!({"path": "malicious-link"}))
            .await;
        assert_eq!(failure, escape("malicious-link"));
    })
    .await;
}

#[tokio::test]
async fn memory_scenario_9_deletion_with_hidden_files() {
    Memory::both(
        || Tree::new().file("temp/.gitkeep", ""),
        async |memory| {
            let failure = memory.failure("delete", json!({"path": "temp/"})).await;
            let mut expected = error("directory_not_empty", "Directory not empty: temp/", "temp/");
            expected["holds"] = json!([".gitkeep"]);
            assert_eq!(failure, expected);
            assert!(memory.tree().has("temp/.gitkeep"));
        },
    )
    .await;
}
