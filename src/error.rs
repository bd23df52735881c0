//! One error type: one line for the user that says what failed, on what, what the system said, and the way out.
//!
//! Layer 0. The command decides on the exit code; [`Kind`] only says what sort of failure it was.

use std::fmt;
use std::path::Path;

/// What sort of failure it was. The commands map it to an exit code (README).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Refused before anything was done: a bad argument, a missing right, no comparison possible.
    Refused,
    /// Something that was begun did not succeed: a workload failed, the disk filled up.
    Failed,
}

/// An error as one line: `what failed: on what: what the system said; what to do`.
#[derive(Debug, Clone)]
pub struct Error {
    kind: Kind,
    message: String,
    errno: Option<i32>,
}

/// The result of everything in this library that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A refusal: a bad argument or a precondition that does not hold.
    pub fn refused(message: impl Into<String>) -> Self {
        Error { kind: Kind::Refused, message: message.into(), errno: None }
    }

    /// A failure of something that was begun.
    pub fn failed(message: impl Into<String>) -> Self {
        Error { kind: Kind::Failed, message: message.into(), errno: None }
    }

    /// A failed system call: the operation as a person would say it, the path, and what the system said.
    pub fn io(operation: &str, path: &Path, cause: &std::io::Error) -> Self {
        Error {
            kind: Kind::Failed,
            message: format!("cannot {operation} {}: {cause}", path.display()),
            errno: cause.raw_os_error(),
        }
    }

    /// The same error as a refusal (found out before anything was begun).
    #[must_use]
    pub fn into_refusal(self) -> Self {
        Error { kind: Kind::Refused, ..self }
    }

    /// Appends the way out.
    #[must_use]
    pub fn hint(self, hint: impl fmt::Display) -> Self {
        Error { message: format!("{}; {hint}", self.message), ..self }
    }

    /// Puts what was being done in front.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        Error { message: format!("{context}: {}", self.message), ..self }
    }

    /// What sort of failure it was.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The system's error number, where there is one.
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
