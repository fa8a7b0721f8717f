//! Text made to be slow: what a rule looks for, over and over, so that every search goes far. The bytes
//! that are looked at are counted; twice the text may cost at most twice the work, and no text more
//! than so many bytes for each of its own.

use super::{redact, work};

const PATTERNS: &[&str] = &[
    "token:",
    "token=",
    "token=/",
    "token='a\n",
    "token=a\\\n",
    "token: |\n",
    "token \"",
    "<token>",
    "\"token\":[",
    "\"token\":[\"a\",",
    "name: token, value",
    "password: \"",
    "password is ",
    "key",
    "auth=",
    "sas",
    "sig=",
    "://",
    "://a:",
    "a://b:c@",
    "http://a:b",
    "proxy=",
    "curl",
    "curl -u ",
    "docker login",
    "sshpass -p",
    "echo chpasswd ",
    "echo sudo -S ",
    "ConvertTo-SecureString -",
    "bearer ",
    "Basic QUJD",
    "Authorization: ",
    "cookie: a=",
    "x-ms-",
    "$6$",
    "eyJ",
    "eyJ.",
    "Q~",
    "a8Q~bbbbbbb\n",
    "ghp_",
    "abcdef.",
    "abcdef.0123456789abcdef ",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----\n",
    "-----BEGIN CERTIFICATE-----\naB3d",
    "LS0tLS1CRUdJTi",
    "QUJD.",
    "aB3",
    "aB3d\n",
    "a=b;",
    "+",
    "\\",
    "\\n",
    "\\\"",
    "%25",
    "%",
    "[redacted ",
    "[redacted token]",
    "\u{1b}[",
    "\0",
    "_x000A_",
    "é",
    "’",
    "${",
    "$(",
    "{{",
    "<",
    "<wa:Password>",
    "<Password><Value>",
    "<key>password</key><string>",
    "| password | ",
    "password a1B!",
    "login a password b",
    "kind: Secret",
    "kind: Secret\ndata:\n  a: ",
    "\"protectedSettings\":{",
    "\"password\":{\"value\":",
    "passwords:\n- a\n",
    "password: word ",
    "aB3!",
    "aB3!aB3#",
    "70 61 ",
    "7061 7373 ",
    "70617373",
    "&amp;",
    "&#34;",
    "\u{9b}",
    "\u{1b}]",
    "\u{ff50}",
    "\r",
    "net user a ",
    "net use a ",
    "htpasswd -b a ",
    "mysql -p",
    "vault login ",
    "+ echo a\n+ x --stdin\n",
    "https://webhook/",
    ":5432:a:",
    "identified by '",
    "--from-literal=a=",
    "AKIA",
    "sk-",
    "密码=",
    "密码 ",
    "keyhttp://a:b",
    "user:b@tcp(",
    ":thin:a/",
    ":::",
    "curl -abu ",
    " -u a -p ",
    "\"-u\", ",
    "\"password\", ",
    "('password', '",
    "setx A_TOKEN ",
    "variable \"password\" {",
    "value: a\nname: password\n",
    "\"type\": \"securestring\", ",
    "chpasswd <<EOF\na:b\n",
    "chpasswd:\nlist:\n- a:b\n",
    "Authorization: a ",
    "password: &a ",
    "password='''",
    "{password: a, ",
    "70:61:",
    "0x70,0x61,",
    "\\160\\141",
    "112 97 ",
    "OBQXG43X",
    "pа",
    "p\u{301}",
    "\u{1d5c9}",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq1\n",
    "-----BEGIN\n",
    "password (a): ",
    "password (",
    "password[0m=[1m",
    "password='a'\"b\"",
    "password=\"a\" + ",
    "{{a",
    "password={{a1",
    "name=\"password\"\n\na\n",
    "form-data; name=\"password\"\n",
    "<password><![CDATA[",
    "seed phrase: a ",
    "passphrase: a\n  b\n  c\n",
    "Password:\n  a\n",
    "1234 stdout P password=a1B\n",
    "1234 a[1]: token=a1B\n",
    "1234 a[1]: eyJhbGci\n",
    "eyJhbGciOiJIUzI1NiJ9 . ",
    "a=70617373",
    "aes-xts ",
    "hmac(a) 0x0f1e2d3c4b5a69788796a5b4c3d2e1f0 ",
    "prime1:\n00:ab\n",
    "priv:",
    "Private-Lines: 1\naaaa\n",
    "d08c9ddf0115d111",
    "p a s s ",
    "p   a   s   s   =   ",
    "get secret jsonpath\naaaaa\n",
    "following passwords\na:bcdef\n",
    "UGFzc3dvcmQ6\n",
    "aaaaaaaa,b,1,\"system:",
    ",kubelet-bootstrap,",
    "user = a:b\n",
    "user = ",
    "vault kv put a b=c ",
    "secrets set a=b ",
    "autologon a b c ",
    "echo '\n",
    "echo aaaa aaaa | passwd",
    "auth plain aGVsbG8x ",
    "://a/integration/",
    "token_a.go:1 ",
    "recovery code: ",
    "identified with a ",
    "mkpasswd a ",
    "openssl passwd a ",
    "login=a:",
    ".azure.net/secrets/",
    "<a name=\"password\" b",
    "password <<a\nb\n",
    "password string = ",
    "\"password\" -> \"a",
    "password=\"a\"+\"b\"",
    "password=\"a\" + $a + ",
    "password=\"a\" + `\n",
    "password=\"a\" `\n + \"b\" `\n",
    "password=\"a\"\\\n",
    "\"a\"\n",
    "\"value\":\"a\",\"b\":1,\"name\":\"password\",",
    "\"value\":\"a,\"name\":\"password",
    "$ANSIBLE_VAULT;",
    "$ANSIBLE_VAULT;1.1;AES256\n",
    "$ANSIBLE_VAULT;a\n0f1e2d3c4b5a69788796a5b4c3d2e1f0\n",
    "$ANSIBLE_VAULT; 0f1e2d3c4b5a69788796a5b4c3d2e1f0 ",
    "ENC[AES256_GCM,data:",
    "{cipher}0f",
    "A_COOKIE=",
    "-setcookie ",
    ".erlang.cookie\n",
    "MIT-MAGIC-COOKIE-1 ",
    " TRUE / ",
    "\tTRUE\t/\tTRUE\t0\ta\t",
    "\tTRUE\t/\tTRUE\t0\ta\tb\n",
    " true  ",
    "value=val=val='name=password ",
];

/// The length of the shorter text.
const LENGTH: usize = 8 * 1024;

/// How much longer the longer text is.
const FACTOR: usize = 4;

/// The most bytes that are looked at for each byte of a text. What is usual is below 20.
const MOST: usize = 2500;

fn repeated(pattern: &str, length: usize) -> String {
    pattern.repeat(length / pattern.len())
}

/// Asserts that `text` costs work that grows with its length only.
fn assert_linear(name: &str, text: impl Fn(usize) -> String) {
    let cost = |length: usize| {
        let text = text(length);
        (work::of(|| drop(redact(&text))), text.len())
    };
    let (short, short_length) = cost(LENGTH);
    let (long, long_length) = cost(LENGTH * FACTOR);
    // Windows of a fixed size are not full in a short text: what they cost comes on top.
    let allowed = short * (long_length / short_length + 1) * 5 / 4;
    assert!(long <= allowed, "{name}: {short} for {short_length}, {long} for {long_length}");
    assert!(long <= long_length * MOST, "{name}: {long} for {long_length}");
}

#[test]
fn repeating_what_a_rule_looks_for_costs_linear_work() {
    for pattern in PATTERNS {
        assert_linear(&format!("{pattern:?}"), |length| repeated(pattern, length));
    }
}

#[test]
fn a_short_text_costs_linear_work_too() {
    let cost = |length: usize| {
        let text = repeated("keyhttp://a:b", length);
        work::of(|| drop(redact(&text)))
    };
    for length in [1024, 2048, 4096] {
        let (short, long) = (cost(length), cost(length * 2));
        assert!(long <= short * 5 / 2, "{short} for {length}, {long} for twice as much");
    }
}

#[test]
fn line_breaks_stay_in_text_made_to_be_slow() {
    for pattern in PATTERNS {
        let text = repeated(pattern, LENGTH / 2);
        let output = redact(&text).text;
        assert_eq!(output.matches('\n').count(), text.matches('\n').count(), "{pattern:?}");
    }
}

#[test]
fn alternating_what_rules_look_for_costs_linear_work() {
    for (first, second) in PATTERNS.iter().zip(PATTERNS.iter().cycle().skip(7)) {
        let pattern = format!("{first}{second}");
        assert_linear(&format!("{pattern:?}"), |length| repeated(&pattern, length));
    }
}

#[test]
fn long_lines_and_deep_nesting_cost_linear_work() {
    let tags = |length: usize| "<a:Password x=\"y\">".repeat(length / 18);
    assert_linear("a line of markup tags", tags);
    let lines = |length: usize| {
        let line = "token \"key\" ".repeat(length / 12 / 16);
        vec![line; 16].join("\n")
    };
    assert_linear("sixteen long lines", lines);
    let escapes = |length: usize| {
        (0..)
            .map(|depth| "\\".repeat(depth) + "\"password")
            .scan(0, |sum, text| {
                *sum += text.len();
                (*sum < length).then_some(text)
            })
            .collect()
    };
    assert_linear("ever deeper escapes", escapes);
    for brackets in ["{\"password\":", "[", "{", "${", "$(", "{{", "<Password>"] {
        assert_linear(brackets, |length| repeated(brackets, length));
    }
    assert_linear("key=key=", |length| repeated("key=", length));
    assert_linear("protected settings", |length| repeated("\"protectedSettings\":{\"a\":", length));
    assert_linear("secrets", |length| repeated("kind: Secret data: ", length));
    assert_linear("secrets in lines", |length| repeated("kind: Secret\ndata:\n", length));
    assert_linear("indented lines", |length| repeated("password: |\n  ", length));
}
