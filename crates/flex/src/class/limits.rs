use bringup_objects::flex::FlexNodeClassSpec;

/// Reports every field whose value is outside its limits.
pub(super) fn check(spec: &FlexNodeClassSpec, say: &mut impl FnMut(&'static str, String)) {
    let group = &spec.resource_group;
    let legal = |letter: char| letter.is_ascii_alphanumeric() || "-_.()".contains(letter);
    if group.is_empty() || group.len() > 90 || !group.chars().all(legal) || group.ends_with('.') {
        let what = "it must have 1 to 90 letters, digits, -, _, ., ( or ), and not end with a dot";
        say("resourceGroup", what.to_owned());
    }
    if let Some(kind) = spec.security_type.as_deref().filter(|kind| *kind != "Standard") {
        say("securityType", format!("`{kind}` is not Standard"));
    }
    if spec.os_disk_size_gb.is_some_and(|size| !(30..=4095).contains(&size)) {
        say("osDiskSizeGB", "it must be from 30 to 4095".to_owned());
    }
    if spec.max_pods_per_node.is_some_and(|pods| !(10..=250).contains(&pods)) {
        say("maxPodsPerNode", "it must be from 10 to 250".to_owned());
    }
    if spec.ssh_public_keys.len() > 16 || !spec.ssh_public_keys.iter().all(|key| is_ssh_key(key)) {
        say("sshPublicKeys", "they must be at most 16 public keys of OpenSSH".to_owned());
    }
    let named = |name: &str| {
        (1..=512).contains(&name.len())
            && !name.contains(['<', '>', '%', '&', '?', '/', '\\'])
            && !name.to_ascii_lowercase().starts_with("bringup-")
    };
    let most = spec.tags.len() <= 40;
    if !most || !spec.tags.iter().all(|(name, value)| named(name) && value.len() <= 256) {
        let what = "at most 40, with names of 1 to 512 characters without <>%&\\?/ that do not begin with bringup-, and values of at most 256";
        say("tags", what.to_owned());
    }
}

fn is_ssh_key(key: &str) -> bool {
    let kinds = [
        "ssh-rsa",
        "ssh-ed25519",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
    ];
    let mut parts = key.split(' ');
    let kind = parts.next().is_some_and(|kind| kinds.contains(&kind));
    let written = |text: &str| {
        let legal = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
        !text.is_empty() && text.chars().all(legal)
    };
    kind && key.len() <= 4096 && !key.contains('\n') && parts.next().is_some_and(written)
}

#[cfg(test)]
mod tests {
    use super::super::Class;
    use super::super::tests::spec;
    use super::*;

    #[test]
    fn what_admission_refuses_is_refused_here_too() {
        let tag = |name: &str| [(name.to_owned(), String::new())].into();
        let wrong = FlexNodeClassSpec {
            resource_group: "rg.".to_owned(),
            security_type: Some("TrustedLaunch".to_owned()),
            os_disk_size_gb: Some(29),
            max_pods_per_node: Some(251),
            ssh_public_keys: vec!["ssh-dss AAAA".to_owned()],
            tags: tag("Bringup-cluster"),
            ..spec()
        };
        let fields: Vec<&str> =
            Class::of(&wrong).unwrap_err().into_iter().map(|error| error.field).collect();
        let expected = [
            "resourceGroup",
            "securityType",
            "osDiskSizeGB",
            "maxPodsPerNode",
            "sshPublicKeys",
            "tags",
        ];
        assert_eq!(fields, expected);
        let right = FlexNodeClassSpec {
            resource_group: "rg_(1).x".to_owned(),
            security_type: Some("Standard".to_owned()),
            os_disk_size_gb: Some(30),
            max_pods_per_node: Some(250),
            ssh_public_keys: vec!["ssh-ed25519 AAAA+/= me at home".to_owned()],
            tags: tag("team"),
            ..spec()
        };
        assert!(Class::of(&right).is_ok());
    }
}
