//! Finds the tool that a wrong name means: models use the tool names of other servers.

use ops::text::near_names::nearest;

/// Names of the same operation in different servers, including our own sets. The first that is served is meant.
///
/// No group contains a tool that destroys more than the called name suggests.
const SAME_WORK: &[&[&str]] = &[
    &[
        "read_file",
        "read",
        "view",
        "cat",
        "open_file",
        "read_text_file",
        "read_multiple_files",
        "get_file_contents",
    ],
    &[
        "list_folder",
        "list",
        "view",
        "ls",
        "dir",
        "list_dir",
        "list_directory",
        "directory_tree",
        "tree",
    ],
    &[
        "grep",
        "search",
        "rg",
        "ripgrep",
        "search_code",
        "search_text",
        "find_in_files",
        "grep_search",
    ],
    &[
        "glob",
        "list",
        "find",
        "find_files",
        "file_search",
        "search_files",
    ],
    &[
        "write_file",
        "write",
        "create",
        "create_file",
        "save_file",
        "new_file",
    ],
    &[
        "edit_file",
        "str_replace",
        "patch_file",
        "edit",
        "replace",
        "apply_patch",
        "apply_diff",
        "str_replace_editor",
        "multi_edit",
    ],
    &[
        "stat_file",
        "info",
        "stat",
        "file_info",
        "get_file_info",
        "exists",
    ],
    &[
        "create_folder",
        "mkdir",
        "create_directory",
        "make_directory",
    ],
    &["remove_file", "delete", "delete_file", "rm", "unlink"],
    &[
        "remove_folder",
        "delete",
        "rmdir",
        "delete_folder",
        "delete_directory",
        "remove_directory",
    ],
    &["move", "rename", "mv", "move_file", "rename_file"],
    &["copy", "cp", "copy_file"],
    &["hash_file", "hash", "checksum", "sha256", "md5"],
    &["compare", "diff", "diff_files", "compare_files"],
    &["list_roots", "list_allowed_directories", "roots"],
];

/// Words that ask for a removal.
const REMOVING: [&str; 5] = ["remove", "delete", "rm", "unlink", "destroy"];

/// The served tool that a wrong name means.
pub(crate) fn meant<'tool>(name: &str, served: &[&'tool str]) -> Option<&'tool str> {
    let plain = name.to_lowercase().replace('-', "_");
    let is_served = |wanted: &&str| served.iter().find(|tool| *tool == wanted).copied();
    let mut groups = SAME_WORK
        .iter()
        .filter(|names| names.contains(&plain.as_str()));
    let same = groups.find_map(|names| names.iter().find_map(is_served));
    same.or_else(|| {
        let allowed = served
            .iter()
            .filter(|tool| !removes(tool) || removes(&plain));
        nearest(&plain, allowed.copied())
    })
}

/// Whether a name asks for a removal.
fn removes(name: &str) -> bool {
    REMOVING.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: [&str; 7] = [
        "read_file",
        "write_file",
        "patch_file",
        "remove_file",
        "remove_folder",
        "grep",
        "move",
    ];

    #[test]
    fn names_of_other_servers_lead_to_ours() {
        for (called, served) in [
            ("read", "read_file"),
            ("Read-File", "read_file"),
            ("search", "grep"),
            ("edit_file", "patch_file"),
            ("delete_file", "remove_file"),
            ("rm", "remove_file"),
            ("rmdir", "remove_folder"),
            ("read_flie", "read_file"),
        ] {
            assert_eq!(meant(called, &WORKSPACE), Some(served), "{called}");
        }
        assert_eq!(
            meant("edit_file", &["view", "str_replace"]),
            Some("str_replace")
        );
        assert_eq!(meant("delete_file", &["list", "delete"]), Some("delete"));
    }

    #[test]
    fn nothing_is_offered_that_destroys_more() {
        for called in [
            "create_file",
            "relove_file",
            "move_file",
            "rename_folder",
            "xyz",
        ] {
            let meant = meant(called, &["remove_file", "remove_folder"]);
            assert_eq!(meant, None, "{called}");
        }
        assert_eq!(meant("delete_file", &["remove_folder", "read_file"]), None);
    }
}
