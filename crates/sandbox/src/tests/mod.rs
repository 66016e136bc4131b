//! Tests that need to see inside: descriptors, and a hook before every system call.
