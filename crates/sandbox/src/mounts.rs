//! How a directory is mounted: whether a file server has it, and whether locks in it reach other machines.
//!
//! The kernel tells both in `/proc/self/mountinfo`, which Landlock closes: ask before the process locks itself in.

use std::os::fd::BorrowedFd;

use crate::root::Root;
use crate::syscall;
use crate::together::Cluster;

/// The file systems whose files are a file server's, by the names that the kernel has for them.
const REMOTE: &[&str] = &[
    "nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "afs", "ocfs2", "gfs2", "lustre", "beegfs",
];
/// Those that a program of this machine fetches.
const REMOTE_IN_USER_SPACE: &[&str] = &[
    "ceph",
    "ceph-fuse",
    "mfs",
    "juicefs",
    "glusterfs",
    "sshfs",
    "s3fs",
    "rclone",
];
/// Further file systems on this machine's own disks or in its memory, besides those that the kernel tells by a number.
const OWN: &[&str] = &[
    "overlay", "ramfs", "zfs", "bcachefs", "jfs", "vfat", "exfat", "ntfs3", "fuseblk",
];
/// Mount options that keep `flock` on this machine: of NFS, SMB, OCFS2 and GFS2, Lustre.
const LOCKS_STAY: &[&str] = &[
    "nolock",
    "local_lock=flock",
    "local_lock=all",
    "nobrl",
    "localflocks",
    "localflock",
];

/// A mount, as one line of the kernel's table tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    file_system: String,
    source: String,
    options: Vec<String>,
}

impl Mount {
    /// The mount that a directory is on; `None` if the kernel does not tell.
    fn of(dir: BorrowedFd<'_>) -> Option<Mount> {
        let number = syscall::mount_number_unchecked(dir)?;
        let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        Mount::in_table(&table, number)
    }

    fn in_table(table: &str, number: u64) -> Option<Mount> {
        let number = number.to_string();
        let mut lines = table.lines();
        let line = lines.find(|line| line.split(' ').next() == Some(&number))?;
        // Any number of fields stands before the dash.
        let (_, of_file_system) = line.split_once(" - ")?;
        let mut words = of_file_system.split(' ');
        Some(Mount {
            file_system: words.next()?.to_owned(),
            source: words.next()?.to_owned(),
            options: words.next()?.split(',').map(str::to_owned).collect(),
        })
    }

    /// The kind of file system, as `mount` names it.
    #[must_use]
    pub fn file_system(&self) -> &str {
        &self.file_system
    }

    /// Tells whether a file server is known to have the files.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        let in_user_space = self.file_system.strip_prefix("fuse.");
        REMOTE.contains(&&*self.file_system)
            || in_user_space.is_some_and(|name| REMOTE_IN_USER_SPACE.contains(&name))
            // MooseFS tells itself by its source only.
            || (self.file_system == "fuse" && self.source.starts_with("mfs#"))
    }

    /// Tells whether no other machine has the files.
    fn is_of_this_machine(&self) -> bool {
        OWN.contains(&&*self.file_system)
    }

    /// The option by which locks stay on this machine.
    fn keeps_locks(&self) -> Option<&str> {
        let mut options = self.options.iter().map(String::as_str);
        options.find(|option| LOCKS_STAY.contains(option))
    }
}

/// Why the locks in a shared directory do not order the changes that several machines make in a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountFault {
    /// The shared directory is mounted with this option, by which locks stay on each machine.
    SharedKeepsLocks(String),
    /// So is the root.
    RootKeepsLocks(String),
    /// The root is on a file server of this kind, and the shared directory is not.
    Apart(String),
}

/// The mount of a shared directory and whether only this machine has it, and the mount of a root, each as far as it is known.
fn fault_of(shared: Option<&Mount>, is_own: bool, root: Option<&Mount>) -> Option<MountFault> {
    let kept = |mount: Option<&Mount>| mount?.keeps_locks().map(str::to_owned);
    let apart = || {
        let root = root.filter(|root| root.is_remote() && is_own)?;
        Some(MountFault::Apart(root.file_system().to_owned()))
    };
    kept(shared)
        .map(MountFault::SharedKeepsLocks)
        .or_else(|| kept(root).map(MountFault::RootKeepsLocks))
        .or_else(apart)
}

impl Root {
    /// The mount of a root whose files may be a file server's; `None` on the usual file systems of a machine.
    #[must_use]
    pub fn distant_mount(&self) -> Option<Mount> {
        distant_mount(self.fd())
    }
}

impl Cluster {
    /// Finds why this directory cannot order the changes in a root.
    #[must_use]
    pub fn mount_fault(&self, root: &Root) -> Option<MountFault> {
        let (shared, root) = (distant_mount(self.fd()), root.distant_mount());
        let is_own = syscall::is_local_unchecked(self.fd())
            || shared.as_ref().is_some_and(Mount::is_of_this_machine);
        fault_of(shared.as_ref(), is_own, root.as_ref())
    }
}

fn distant_mount(dir: BorrowedFd<'_>) -> Option<Mount> {
    if syscall::is_local_unchecked(dir) {
        return None;
    }
    Mount::of(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw,errors=remount-ro
31 22 0:40 / /srv/a rw,relatime shared:9 - nfs4 server:/a rw,vers=4.2,hard,proto=tcp,local_lock=none,addr=10.0.0.2
32 22 0:41 / /srv/b rw,relatime - nfs server:/b rw,vers=3,hard,nolock,proto=tcp,local_lock=all,addr=10.0.0.2
33 22 0:42 / /srv/c rw - nfs4 server:/c rw,vers=4.1,local_lock=flock
34 22 0:43 / /srv/d rw - nfs4 server:/d rw,vers=4.1,local_lock=posix
35 22 0:44 / /srv/e rw - fuse.ceph-fuse ceph-fuse rw,user_id=0
36 22 0:45 / /srv/f rw - fuse mfs#master:9421 rw,user_id=0
37 22 0:46 / /srv/g rw - fuse.bindfs /srv/h rw,user_id=0
38 22 0:47 / /srv/with\\040space-\\040- rw - cifs //server/share rw,nobrl
3 22 0:48 / /srv/i rw broken
";

    fn mount(number: u64) -> Mount {
        Mount::in_table(TABLE, number).unwrap()
    }

    #[test]
    fn file_servers_are_told_from_file_systems_of_this_machine() {
        for remote in [31, 32, 33, 34, 35, 36, 38] {
            assert!(mount(remote).is_remote(), "{remote}");
        }
        assert!(!mount(22).is_remote() && !mount(37).is_remote());
        assert_eq!(mount(31).file_system(), "nfs4");
    }

    #[test]
    fn options_that_keep_locks_on_this_machine_are_found() {
        let kept = |number| mount(number).keeps_locks().map(str::to_owned);
        assert_eq!(kept(32).as_deref(), Some("nolock"));
        assert_eq!(kept(33).as_deref(), Some("local_lock=flock"));
        assert_eq!(kept(38).as_deref(), Some("nobrl"));
        for shared in [22, 31, 34, 35, 36, 37] {
            assert_eq!(kept(shared), None, "{shared}");
        }
    }

    #[test]
    fn replicas_need_a_shared_directory_and_roots_whose_locks_all_machines_see() {
        let fault = |shared: u64, is_own, root: u64| {
            fault_of(Some(&mount(shared)), is_own, Some(&mount(root)))
        };
        assert_eq!(fault(31, false, 31), None);
        assert_eq!(fault(35, false, 35), None);
        let told = |option: &str| option.to_owned();
        let shared = Some(MountFault::SharedKeepsLocks(told("nolock")));
        assert_eq!(fault(32, false, 31), shared);
        let root = Some(MountFault::RootKeepsLocks(told("local_lock=flock")));
        assert_eq!(fault(31, false, 33), root);
        assert_eq!(fault(22, true, 31), Some(MountFault::Apart(told("nfs4"))));
        assert_eq!(fault(22, true, 37), None, "a file system of this machine");
        assert_eq!(fault_of(None, true, None), None);
        assert_eq!(fault_of(None, false, Some(&mount(31))), None, "unknown");
    }

    #[test]
    fn a_line_that_is_missing_or_broken_is_no_mount() {
        assert_eq!(Mount::in_table(TABLE, 3), None);
        assert_eq!(Mount::in_table(TABLE, 2), None);
        assert_eq!(Mount::in_table("", 22), None);
    }

    #[test]
    fn the_kernel_tells_the_mount_of_a_directory() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let mount = Mount::of(root.fd()).unwrap();
        assert!(!mount.file_system().is_empty() && !mount.options.is_empty());
    }
}
