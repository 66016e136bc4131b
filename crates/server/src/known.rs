//! The tool names an allowlist may hold, set by set.

use crate::settings::KnownTools;

/// Every tool of every set that an allowlist decides on; `list_roots` is always there.
pub(crate) const KNOWN_TOOLS: KnownTools<'static> = &[
    (
        "workspace",
        &[
            "list_folder",
            "read_file",
            "write_file",
            "remove_file",
            "patch_file",
            "create_folder",
            "remove_folder",
            "stat_file",
            "hash_file",
            "permissions_file",
            "copy",
            "move",
            "grep",
            "glob",
        ],
    ),
    (
        "files",
        &[
            "list", "read", "write", "mkdir", "delete", "copy", "move", "info", "search",
        ],
    ),
    (
        "memory",
        &[
            "view",
            "create",
            "str_replace",
            "insert",
            "delete",
            "rename",
        ],
    ),
    (
        "guide",
        &[
            "guide_cache_file",
            "guide_list_directory",
            "guide_read_file",
            "guide_request_file",
            "guide_request_directory",
            "guide_cache_stats",
        ],
    ),
];
