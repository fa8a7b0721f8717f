use crate::redaction::rules::{assert_kept, redacted};

#[test]
fn passwords_of_known_programs_go() {
    for (text, expected) in [
        (
            "docker login -u x -p hunter2 r.example",
            "docker login -u x -p [redacted tool-password] r.example",
        ),
        ("sshpass -phunter2 ssh x", "sshpass -p[redacted tool-password] ssh x"),
        ("curl -sS -u 'bob:hunter2' https://x", "curl -sS -u '[redacted tool-password]' https://x"),
        ("crictl pull --creds bob:hunter2 x", "crictl pull --creds [redacted tool-password] x"),
        (
            "ConvertTo-SecureString \"a b\" -AsPlainText",
            "ConvertTo-SecureString \"[redacted tool-password]\" -AsPlainText",
        ),
        (
            "chpasswd:\n  list: |\n    bob:hunter2\n",
            "chpasswd:\n  list: |\n    [redacted tool-password]\n",
        ),
        ("+ echo hunter2 | sudo -S true", "+ echo [redacted tool-password] | sudo -S true"),
        ("+ echo 'bob:hunter2' | chpasswd", "+ echo '[redacted tool-password]' | chpasswd"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn the_same_flags_of_other_programs_stay() {
    assert_kept(&[
        "mkdir -p /opt/azure",
        "useradd -u 1000:1000 x",
        "docker run --user 1000:1000 x",
        "curl -fsSLv https://packages.example/x",
        "systemctl --user status",
        "login: root -p x",
    ]);
}
