//! How many files the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many descriptors as the system grants: the soft limit is for programs that cannot count beyond 1,024.
///
/// Where that is refused the process goes on with what it has.
pub fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = Rlimit {
            current: maximum,
            maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
