//! Errors of requests to a cluster, in words for the user.

use kube::Error;
use kube::client::AuthError;
use kube::config::KubeconfigError;

use crate::failure::Failure;
use crate::safe;

/// A request: the verb, and the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) verb: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) group: &'static str,
}

impl Asked {
    /// The request in words, such as `list on bootstrapreports in bringup.dev`.
    fn words(self) -> String {
        let Self { verb, resource, group } = self;
        if group.is_empty() {
            format!("`{verb}` on `{resource}`")
        } else {
            format!("`{verb}` on `{resource}.{group}`")
        }
    }
}

/// Why an object could not be read.
#[derive(Debug)]
pub(crate) enum Unseen {
    /// The cluster does not know the kind.
    NotServed,
    /// The user lacks the permission. Other objects may still give an answer.
    Forbidden { asked: Asked, said: String },
    /// No request can succeed.
    Failed(Failure),
}

impl Unseen {
    /// The reason for a failed request.
    pub(super) fn of(error: &Error, asked: Asked, address: &str) -> Self {
        match error {
            Error::Api(status) if status.code == 404 => Self::NotServed,
            Error::Api(status) if status.code == 403 => {
                Self::Forbidden { asked, said: safe::line(&status.message) }
            }
            other => Self::Failed(failed(other, asked, address)),
        }
    }

    /// A note about missing objects, for an answer without them.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            Self::Forbidden { asked, .. } => {
                Some(format!("not read: you lack permission for {}", asked.words()))
            }
            Self::NotServed | Self::Failed(_) => None,
        }
    }

    /// The error of the command, if there is no answer without the objects.
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Forbidden { asked, said } => {
                Failure::error(format!("you lack permission for {}", asked.words()))
                    .detail(said)
                    .hint(grant(asked))
            }
            Self::NotServed => Failure::error("bringup is not installed in this cluster")
                .detail("the API server does not serve bootstrapreports.bringup.dev")
                .hint(
                    "install the chart: `helm install bringup charts/bringup --namespace \
                 bringup-system --create-namespace`; or select another cluster with --context",
                ),
        }
    }
}

fn grant(asked: Asked) -> String {
    if asked.group == "bringup.dev" {
        "ask a cluster administrator for the ClusterRole `bringup-reader`, which the chart installs \
         and the ClusterRole `view` includes"
            .to_owned()
    } else {
        format!("ask a cluster administrator for a ClusterRole that allows {}", asked.words())
    }
}

fn failed(error: &Error, asked: Asked, address: &str) -> Failure {
    match error {
        Error::Api(status) if status.code == 401 => {
            Failure::error(format!("the API server at {address} rejects your credentials"))
                .detail(safe::line(&status.message))
                .hint("log in again, and check the login with `kubectl get nodes`")
        }
        Error::Api(status) => {
            Failure::error(format!("the API server at {address} refused {}", asked.words()))
                .detail(format!("{}: {}", status.code, safe::line(&status.message)))
        }
        Error::SerdeError(source) => {
            Failure::error(format!("cannot parse the response to {}", asked.words()))
                .detail(safe::line(&source.to_string()))
                .hint("check that this bringup is not older than the one in the cluster")
        }
        other => connection(other, address),
    }
}

/// No server answers at the address, or the server is not an API server.
pub(super) fn connection(error: &Error, address: &str) -> Failure {
    if let Error::Auth(error) = error {
        return Failure::error(format!("cannot log in to the API server at {address}"))
            .detail(login(error))
            .hint("log in again, and check the login with `kubectl get nodes`");
    }
    Failure::error(format!("the API server at {address} cannot be reached"))
        .detail(innermost(error))
        .hint(
            "check that the cluster runs, that the network (VPN, proxy) is up, and that the context \
             is right: `kubectl config get-contexts` lists contexts",
        )
}

/// Why the login failed. The output of a login program may contain the token and is not repeated; its error
/// messages are.
fn login(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => {
            format!("cannot run the login program of the kubeconfig: {source}")
        }
        AuthError::AuthExecRun { out, .. } => {
            let said = safe::line(String::from_utf8_lossy(&out.stderr).trim());
            let ended = format!("the login program of the kubeconfig ended with {}", out.status);
            if said.is_empty() { ended } else { format!("{ended}: {said}") }
        }
        AuthError::AuthExecParse(_) => {
            "the login program of the kubeconfig did not print a valid ExecCredential".to_owned()
        }
        other => safe::line(&other.to_string()),
    }
}

/// The innermost error: the outer errors repeat it or add nothing.
fn innermost(error: &Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let timed_out = deepest
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut);
    if timed_out {
        return "the server did not respond in time".to_owned();
    }
    safe::line(&deepest.to_string())
}

/// The error when there is no usable kubeconfig.
pub(super) fn kubeconfig(error: &KubeconfigError) -> Failure {
    let hint = "set --kubeconfig or KUBECONFIG; `az aks get-credentials \
                --resource-group GROUP --name CLUSTER` writes one";
    match error {
        KubeconfigError::ReadConfig(source, path) => {
            Failure::error(format!("cannot read the kubeconfig `{}`", path.display()))
                .detail(source.to_string())
                .hint(hint)
        }
        KubeconfigError::CurrentContextNotSet => {
            Failure::error("the kubeconfig has no current context")
                .hint("select one with --context; `kubectl config get-contexts` lists contexts")
        }
        KubeconfigError::LoadContext(name) => {
            Failure::usage(format!("the kubeconfig has no context `{}`", safe::line(name)))
                .hint("`kubectl config get-contexts` lists contexts")
        }
        other => Failure::error("cannot use the kubeconfig")
            .detail(safe::line(&other.to_string()))
            .hint(hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: Asked = Asked { verb: "list", resource: "bootstrapreports", group: "bringup.dev" };

    fn refused(code: u16) -> Error {
        let status = kube::core::Status::failure("no\u{1b}[2J way", "Why").with_code(code);
        Error::Api(status.boxed())
    }

    #[test]
    fn a_missing_right_is_named_with_who_gives_it() {
        let text = Unseen::of(&refused(403), LIST, "https://a").failure().text();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("`list` on `bootstrapreports.bringup.dev`"), "{text}");
        assert!(text.contains("`bringup-reader`") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn what_a_login_program_wrote_is_not_repeated() {
        use std::os::unix::process::ExitStatusExt as _;
        let out = std::process::Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: b"token".to_vec(),
            stderr: b"log in first\n".to_vec(),
        };
        let said = login(&AuthError::AuthExecRun { cmd: "x".to_owned(), out: Box::new(out) });
        assert!(said.ends_with("exit status: 1: log in first"), "{said}");
    }

    #[test]
    fn other_refusals_are_told_apart() {
        let text = |code| Unseen::of(&refused(code), LIST, "https://a").failure().text();
        assert!(text(404).contains("not installed"));
        assert!(text(401).contains("rejects your credentials"));
        assert!(text(500).contains("refused `list`"));
    }
}
