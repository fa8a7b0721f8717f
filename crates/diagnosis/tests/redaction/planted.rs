//! Secrets made up at random, in the forms in which they are found, and ways to distort them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

/// A text with a secret in it.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    pub(crate) text: String,
    /// What must not be left.
    pub(crate) secret: String,
    /// Whether the secret is recognised by its form, so that nothing of it should be left.
    pub(crate) has_form: bool,
}

fn planted(
    templates: &'static [&'static str],
    text: String,
    secret: String,
    has_form: bool,
) -> impl Strategy<Value = Planted> {
    proptest::sample::select(templates).prop_map(move |template| Planted {
        text: template.replace("{}", &text),
        secret: secret.clone(),
        has_form,
    })
}

/// `length` random bytes.
fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), length).no_shrink()
}

fn percent_encoded(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// A password as people and generators make them.
fn password() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{4,8}[0-9]{2}[!-][A-Z][a-z]{3}",
        "[A-Za-z0-9]{12,24}",
        "[A-Z][a-z]{5}[0-9]{2}[!$%*.?_~-][A-Za-z0-9]{4}"
    ]
}

fn bootstrap_token() -> impl Strategy<Value = Planted> {
    ("[a-z0-9]{6}", "[a-z0-9]{16}").prop_flat_map(|(id, secret)| {
        let templates = &[
            "+ TLS_BOOTSTRAP_TOKEN={}",
            "kubeadm join 10.0.0.4:6443 --token {} --x",
            "--token={}",
            "    token: \"{}\"",
            "used {} to join",
            "{\"tls_bootstrapping_token\":\"{}\"}",
        ];
        planted(templates, format!("{id}.{secret}"), secret, true)
    })
}

fn json_web_token() -> impl Strategy<Value = Planted> {
    (bytes(24), bytes(64)).prop_flat_map(|(payload, signature)| {
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let header = part(br#"{"typ":"JWT","alg":"RS256","kid":"a1b2"}"#);
        let claims = part(format!("{{\"oid\":\"{}\"}}", part(&payload)).as_bytes());
        let signature = part(&signature);
        let templates = &[
            "+ refresh_token={}",
            "authorization: 'Bearer {}'",
            "got {} back",
            "{\"access_token\": \"{}\"}",
        ];
        planted(templates, format!("{header}.{claims}.{signature}"), signature, true)
    })
}

fn sas_signature() -> impl Strategy<Value = Planted> {
    bytes(32).prop_flat_map(|key| {
        let signature = percent_encoded(&STANDARD.encode(key));
        let templates = &[
            "https://st.blob.example/a.sh?sv=2023-08-03&sp=r&sig={}",
            "url=\"https://st.blob.example/a?sig={}&se=2025-09-12\"",
            "SharedAccessSignature sr=x&sig={}&skn=y",
        ];
        planted(templates, signature.clone(), signature, true)
    })
}

fn account_key() -> impl Strategy<Value = Planted> {
    bytes(64).prop_flat_map(|key| {
        let key = STANDARD.encode(key);
        let templates = &[
            "AccountName=x;AccountKey={};EndpointSuffix=core.example",
            "\"SharedAccessKey\": \"{}\"",
            "the key {} was refused",
            "--account-key {}",
        ];
        planted(templates, key.clone(), key, true)
    })
}

fn client_secret() -> impl Strategy<Value = Planted> {
    ("[A-Za-z0-9]{3}[0-9]", "[A-Za-z0-9_.-]{33}[A-Za-z0-9]").prop_flat_map(|(head, tail)| {
        let secret = format!("{head}Q~{tail}");
        let templates = &[
            "client_secret={}&grant_type=x",
            "{\"aadClientSecret\": \"{}\"}",
            "+ AZURE_CLIENT_SECRET={}",
            "sent '{}' to it",
        ];
        planted(templates, secret.clone(), secret, true)
    })
}

fn private_key() -> impl Strategy<Value = Planted> {
    (bytes(200), any::<bool>()).prop_flat_map(|(key, one_line)| {
        let body = STANDARD.encode(key);
        let lines: Vec<&str> =
            (0..body.len()).step_by(64).map(|at| &body[at..body.len().min(at + 64)]).collect();
        let separator = if one_line { "\\n" } else { "\n" };
        let pem = format!(
            "-----BEGIN RSA PRIVATE KEY-----{separator}{}{separator}-----END RSA PRIVATE KEY-----",
            lines.join(separator)
        );
        let templates = &["{}", "KEY=\"{}\"", "cat <<EOF\n{}\nEOF"];
        planted(templates, pem, body, true)
    })
}

fn encoded_private_key() -> impl Strategy<Value = Planted> {
    bytes(120).prop_flat_map(|key| {
        let body = STANDARD.encode(key);
        let pem = STANDARD.encode(format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
        ));
        let templates =
            &["    client-key-data: {}", "+ KUBELET_CLIENT_PRIVATE_KEY={}", "wrote {} there"];
        let body = pem[48..].to_owned();
        planted(templates, pem, body, true)
    })
}

fn named_password() -> impl Strategy<Value = Planted> {
    password().prop_flat_map(|secret| {
        let templates = &[
            "export ADMIN_PASSWORD={}",
            "  password: {}",
            "\"password\": \"{}\", \"x\": 1",
            "--password {} --x",
            "PASSWD='{}'",
            "apiKey={}",
            "\"registryCredential\": \"{}\"",
            "<password>{}</password>",
            "docker login -u bob -p {} r.example",
            "curl -u 'bob:{}' https://x.example",
        ];
        planted(templates, secret.clone(), secret, false)
    })
}

fn userinfo() -> impl Strategy<Value = Planted> {
    password().prop_flat_map(|secret| {
        let templates = &[
            "http_proxy=http://aksnodes:{}@px.corp.example:8080/",
            "clone https://x:{}@git.example/a.git failed",
        ];
        planted(templates, secret.clone(), secret, false)
    })
}

fn registry_auth() -> impl Strategy<Value = Planted> {
    password().prop_flat_map(|secret| {
        let auth = STANDARD.encode(format!("plover01:{secret}"));
        let templates = &[
            "{\"auths\":{\"r.example\":{\"auth\":\"{}\"}}}",
            "Authorization: Basic {}",
            "> X-Registry-Auth: {}",
        ];
        planted(templates, auth.clone(), auth, false)
    })
}

fn vendor_token() -> impl Strategy<Value = Planted> {
    "[A-Za-z0-9]{36}".prop_flat_map(|secret| {
        let templates =
            &["clone with ghp_{}", "GITHUB_TOKEN=ghp_{}", "Authorization: token ghp_{}"];
        planted(templates, secret.clone(), secret, true)
    })
}

/// A secret of any kind.
pub(crate) fn any_secret() -> impl Strategy<Value = Planted> {
    prop_oneof![
        bootstrap_token(),
        json_web_token(),
        sas_signature(),
        account_key(),
        client_secret(),
        private_key(),
        encoded_private_key(),
        named_password(),
        userinfo(),
        registry_auth(),
        vendor_token(),
    ]
}

/// Lines of a log to put around a secret.
pub(crate) fn noise() -> impl Strategy<Value = String> {
    let line = proptest::sample::select(vec![
        "+ exit 211",
        "curl: (28) Connection timed out",
        "failed to get access token with endpoint https://x.example, ret_code: 212",
        "2025-09-12T08:33:51Z kubelet[2610]: E0912 node \"aks-np1-vmss000001\" not found",
        "{ \"ExitCode\": \"50\", \"Output\": \"",
        "[   16.902117] cloud-init[2031]: done",
        "it's \"odd\" & (unbalanced",
        "",
    ]);
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

/// As JSON writes a text inside a string, `levels` times.
pub(crate) fn escaped(text: &str, levels: usize) -> String {
    (0..levels).fold(text.to_owned(), |text, _| {
        let quoted = serde_json::to_string(&text).expect("a string");
        quoted[1..quoted.len() - 1].to_owned()
    })
}

/// As a console of `width` columns writes a text.
pub(crate) fn wrapped(text: &str, width: usize, line_break: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let lines: Vec<String> = letters.chunks(width).map(|line| line.iter().collect()).collect();
    lines.join(line_break)
}

/// A text without the differences of notation: no white space, no escapes.
pub(crate) fn squeezed(text: &str) -> String {
    let mut text = text.replace("\\r", "").replace("\\n", "").replace("\\t", "");
    text.retain(|letter| !letter.is_whitespace() && letter != '\\');
    text
}

/// The longest part of `secret` that is in `text`.
pub(crate) fn longest_remnant(text: &str, secret: &str) -> usize {
    let mut longest = 0;
    for start in 0..secret.len() {
        while secret.get(start..start + longest + 1).is_some_and(|part| text.contains(part)) {
            longest += 1;
        }
    }
    longest
}
