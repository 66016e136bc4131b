//! The second wall: Landlock confines the whole process to its roots, so that a bug elsewhere cannot read other files.
//!
//! It must be set up before any thread exists, because it applies to the calling thread and its children.

use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd,
    RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError,
    RulesetStatus,
};

use crate::root::Root;
use crate::roots::Roots;

/// The newest set of rights that is requested; older kernels enforce the part that they know.
const WANTED: ABI = ABI::V5;

/// Whether the process locks itself in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Landlock {
    /// As far as the kernel supports it.
    #[default]
    Auto,
    /// Wholly, or the program does not start.
    Require,
    /// Not at all.
    Off,
}

/// What the kernel enforces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protection {
    /// The process is locked to its roots; `abi` is what the kernel knows.
    Enforced {
        /// The kernel's version of Landlock.
        abi: i32,
        /// Every right asked for is enforced.
        fully: bool,
    },
    /// The kernel has no Landlock, or it is switched off there.
    Unavailable,
    /// The operator switched it off.
    Off,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protection::Enforced { abi, fully: true } => write!(f, "landlock abi {abi}"),
            Protection::Enforced { abi, fully: false } => write!(f, "landlock abi {abi} (partly)"),
            Protection::Unavailable => f.write_str("no landlock"),
            Protection::Off => f.write_str("landlock off"),
        }
    }
}

/// A file or directory beside the roots that stays reachable: certificates, log files.
#[derive(Debug, Clone)]
pub struct Exception<'a> {
    /// Its host path.
    pub path: &'a Path,
    /// What may be done there.
    pub rights: ExceptionRights,
}

/// What may be done beside the roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceptionRights {
    /// Files may be read.
    Read,
    /// Files may be made, written and read, not removed.
    Write,
}

/// Why the process could not be locked in.
#[derive(Debug, thiserror::Error)]
pub enum LandlockError {
    /// `Require` was asked for and the kernel does not enforce everything.
    #[error("landlock is required, but the kernel enforces it only partly or not at all")]
    NotEnforced,
    /// The kernel refused the rules.
    #[error("landlock refused the rules: {0}")]
    Rules(#[from] RulesetError),
    /// An exception's path could not be opened.
    #[error("landlock rule for {0} could not be made")]
    Exception(String),
}

/// Locks the process to its roots. Call it before any thread is started.
pub fn lock_in(
    roots: &Roots,
    mode: Landlock,
    exceptions: &[Exception<'_>],
) -> Result<Protection, LandlockError> {
    // Anything in /proc or /etc must be opened before the process locks itself in.
    Root::prepare_temporary_names();
    if mode == Landlock::Off {
        return Ok(Protection::Off);
    }
    let status = restrict(roots, exceptions)?;
    let fully = status.ruleset == RulesetStatus::FullyEnforced;
    if mode == Landlock::Require && !fully {
        return Err(LandlockError::NotEnforced);
    }
    Ok(match status.ruleset {
        RulesetStatus::NotEnforced => Protection::Unavailable,
        _ => Protection::Enforced {
            abi: kernel_abi(status.landlock),
            fully,
        },
    })
}

fn kernel_abi(status: LandlockStatus) -> i32 {
    match status {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => kernel_abi.unwrap_or(effective_abi as i32),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    }
}

fn restrict(
    roots: &Roots,
    exceptions: &[Exception<'_>],
) -> Result<RestrictionStatus, LandlockError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .create()?;
    let ruleset = roots.iter().try_fold(ruleset, |rules, root| {
        let rights = if root.read_only {
            read_rights()
        } else {
            read_rights() | write_rights()
        };
        allow(rules, PathBeneath::new(root.root.fd(), rights))
    })?;
    let histories = roots.iter().filter_map(|root| root.root.history());
    let ruleset = histories
        .filter_map(|history| history.outside())
        .try_fold(ruleset, |rules, dir| {
            allow(rules, PathBeneath::new(dir, read_rights() | write_rights()))
        })?;
    let ruleset = roots
        .cluster()
        .into_iter()
        .try_fold(ruleset, |rules, one| {
            allow(
                rules,
                PathBeneath::new(one.fd(), read_rights() | write_rights()),
            )
        })?;
    let ruleset = exceptions.iter().try_fold(ruleset, allow_exception)?;
    Ok(ruleset.restrict_self()?)
}

fn allow_exception(
    rules: RulesetCreated,
    exception: &Exception<'_>,
) -> Result<RulesetCreated, LandlockError> {
    let unusable = || LandlockError::Exception(exception.path.display().to_string());
    let fd = PathFd::new(exception.path).map_err(|_| unusable())?;
    let is_dir = exception.path.is_dir();
    let wanted = match exception.rights {
        ExceptionRights::Read => read_rights(),
        ExceptionRights::Write => AccessFs::WriteFile | AccessFs::ReadFile | AccessFs::MakeReg,
    };
    let rights = if is_dir {
        wanted
    } else {
        wanted & AccessFs::from_file(WANTED)
    };
    Ok(allow(rules, PathBeneath::new(fd, rights))?)
}

fn allow<F: AsFd>(
    rules: RulesetCreated,
    rule: PathBeneath<F>,
) -> Result<RulesetCreated, RulesetError> {
    rules.add_rule(rule)
}

fn read_rights() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Everything the operations need; no execution, no devices, no ioctl on devices.
fn write_rights() -> BitFlags<AccessFs> {
    AccessFs::WriteFile
        | AccessFs::RemoveDir
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeReg
        | AccessFs::MakeSym
        // Landlock treats a move as creation at the destination. Devices are never moved.
        | AccessFs::MakeFifo
        | AccessFs::MakeSock
        | AccessFs::Refer
        | AccessFs::Truncate
}
