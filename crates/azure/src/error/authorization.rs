//! The missing permission in the message of `AuthorizationFailed`.

/// The missing action and its scope. `LinkedAuthorizationFailed` first names the action that *is* allowed, so
/// everything before "does not have" is ignored.
pub(super) fn missing(message: &str) -> (Option<String>, Option<String>) {
    let Some((_, lacks)) = message.split_once("does not have") else {
        return (None, None);
    };
    (quoted_after(lacks, "perform action"), quoted_after(lacks, "scope"))
}

fn quoted_after(message: &str, words: &str) -> Option<String> {
    let (_, rest) = message.split_once(words)?;
    let rest = rest.strip_prefix("(s)").unwrap_or(rest).trim_start();
    let (quoted, _) = rest.strip_prefix('\'')?.split_once('\'')?;
    (!quoted.is_empty()).then(|| quoted.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_and_scope_stand_in_quotes() {
        let plain = "The client 'c' with object id 'o' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/read' over scope '/subscriptions/s/resourceGroups/g' or the scope is invalid. If access was recently granted, please refresh your credentials.";
        let linked = "The client 'c' has permission to perform action 'Microsoft.Compute/virtualMachines/write' on scope '/vm'; however, it does not have permission to perform action(s) 'Microsoft.Network/virtualNetworks/subnets/join/action' on the linked scope(s) '/subnet'.";
        for (message, action, scope) in [
            (plain, "Microsoft.Compute/virtualMachines/read", "/subscriptions/s/resourceGroups/g"),
            (linked, "Microsoft.Network/virtualNetworks/subnets/join/action", "/subnet"),
        ] {
            assert_eq!(missing(message), (Some(action.to_owned()), Some(scope.to_owned())));
        }
    }

    #[test]
    fn other_texts_name_nothing() {
        for text in [
            "",
            "no",
            "does not have",
            "does not have x to perform action '",
            "does not have x to perform action soon, 'x'",
            "does not have x to perform action '' over scope ''",
        ] {
            assert_eq!(missing(text), (None, None), "{text}");
        }
    }
}
