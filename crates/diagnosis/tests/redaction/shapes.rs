//! Forms in which secrets are found, one line each, made up for this test. What stands between `«` and
//! `»` must not survive, neither in the text alone nor on the line that decides a verdict.

use bringup_diagnosis::redaction::redact;
use bringup_diagnosis::{Evidence, diagnose};

/// Names and how values are joined to them.
const NAMES: &[&str] = &[
    "pass=«hunter»",
    "DB_PASS='«hunter two»'",
    "rootpass: «hunter2»",
    "bindpw=«hunter2»",
    "\"adminPw\": \"«hunter2»\"",
    "pin=«4711»",
    "otp: «471147»",
    "wifi.psk=«hunter22»",
    "creds=«bob-hunter2»",
    "snmp community: «hunter2»",
    "Kennwort: «hunter2»",
    "Passwort=«hunter2»",
    "contraseña: «hunter2»",
    "contrasena=«hunter2»",
    "mot de passe : «hunter2»",
    "motdepasse=«hunter2»",
    "senha=«hunter2»",
    "wachtwoord=«hunter2»",
    "hasło: «hunter2»",
    "heslo=«hunter2»",
    "lösenord=«hunter2»",
    "пароль: «hunter2»",
    "Пароль=«hunter2»",
    "密码：«hunter2»",
    "パスワード=«hunter2»",
    "비밀번호: «hunter2»",
    "parola=«hunter2»",
    "password=«/srv/hunter/two»",
    "password=«https://hunter.two/x»",
    "password=«12»",
    "password=«v1.2.3»",
    "password=«2024-01-01»",
    "password=«24h»",
    "password=«hunter.pem»",
    "password=«optional»",
    "password=«<hunter>»",
    "password=«${hunter:two}»",
    "{\"password\": «471147», \"a\": 1}",
    "password \"«hunter2»\"",
    "setPassword(\"«hunter2»\")",
    "| password | «hunter2» |",
    "passphrase: «correct horse battery»",
    "login bob password «hunter»",
    "machine h.example\n  login bob\n  password «hunter»\n",
    "NEW_LICENSE_KEY=«0f1e2d3c4b5a69788796a5b4c3d2e1f0»",
    "MyServiceKey=«0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0»",
    "IDENTITY_HEADER=«0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0»",
    "JSESSIONID=«0F1E2D3C4B5A69788796A5B4C3D2E1F0»",
    "session_id: «q7w8e9r0t1y2u3i4o5p6»",
    "https://f.example/api?code=«q7w8e9r0t1y2u3i4o5p6a7s8d9f0»",
    "cipher seed «0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0»",
    "sc.exe config svc obj= DOM\\bob password= «hunter2»",
];

/// Documents.
const DOCUMENTS: &[&str] = &[
    "<wa:UserPassword>«hunter2»</wa:UserPassword>",
    "<ns1:AdminPassword xsi:type=\"xs:string\">«hunter2»</ns1:AdminPassword>",
    "<Password>\n  <Value>«hunter2»</Value>\n  <PlainText>true</PlainText>\n</Password>",
    "<AutoLogon><Password><Value>«aHVudGVyMgBQ»</Value></Password></AutoLogon>",
    "<Password><![CDATA[«hunter2»]]></Password>",
    "<key>password</key><string>«hunter2»</string>",
    "<entry key=\"password\">«hunter2»</entry>",
    "<add key=\"DbPassword\" value=\"«hunter2»\"/>",
    "<user name=\"bob\" password=\"«hunter2»\"/>",
    "<S N=\"Password\">«hunter2»</S>",
    "kind: Secret\napiVersion: v1\nstringData:\n  anything: «hunter»\n  other: \"«two»\"\nmetadata:\n  name: x\n",
    "apiVersion: v1\ndata:\n  anything: «aHVudGVy»\nkind: Secret\n",
    "{\"kind\":\"Secret\",\"data\":{\"a\":\"«aHVudGVy»\",\"b\":\"«dHdv»\"}}",
    "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"«aHVudGVy»\"},\"kind\":\"Secret\"}",
    "\"protectedSettings\": {\"commandToExecute\": \"«run hunter»\", \"a\": [\"«two»\"]}",
    "\"adminPassword\": {\"value\": \"«hunter2»\"}",
    "adminPassword:\n  value: «hunter2»\n",
    "passwords:\n  - «hunter2»\n  - «hunter3»\n",
    "password: >-\n  «hunter two\n  and three»\nuser: bob\n",
    "- name: DB_PASSWORD\n  value: «hunter2»\n",
    "db.example:5432:app:bob:«hunter2»",
    "&lt;password&gt;«hunter2»&lt;/password&gt;",
    "&quot;password&quot;:&quot;«hunter2»&quot;",
    "{\\\"password\\\":\\\"«hunter2»\\\"}",
];

/// Command lines.
const COMMANDS: &[&str] = &[
    "net use Z: \\\\srv\\share «hunter2» /user:DOM\\bob",
    "net user bob «hunter2» /add",
    "cmdkey /add:srv /user:bob /pass:«hunter2»",
    "schtasks /create /ru bob /rp «hunter2» /tn x",
    "psexec \\\\h -u bob -p «hunter2» cmd",
    "reg add HKLM\\x /v DefaultPassword /t REG_SZ /d «hunter2» /f",
    "Set-ItemProperty -Path x -Name DefaultPassword -Value «hunter2»",
    "ConvertTo-SecureString «hunter2» -AsPlainText -Force",
    "ConvertTo-SecureString -AsPlainText -Force «hunter2»",
    "az login --service-principal -u x -p «hunter2» --tenant y",
    "az acr login -n r -u x -p «hunter2»",
    "helm registry login r.example -u bob -p «hunter2»",
    "+ echo «hunter2»\n+ docker login --password-stdin -u x r",
    "+ docker login --password-stdin -u x r\n+ echo «hunter2»",
    "printf '%s' '«hunter2»' | podman login --password-stdin r",
    "echo -n «hunter2» | sudo -S true",
    "echo «hunter2» | passwd --stdin root",
    "sshpass -p«hunter2» ssh x",
    "mysql -u root -p«hunter2» db",
    "redis-cli -h r -a «hunter2» ping",
    "sqlcmd -S s -U sa -P «hunter2»",
    "mongosh -u bob -p «hunter2» h",
    "ldapsearch -D cn=x -w «hunter2» -b y",
    "smbclient //s/x -U bob%«hunter2»",
    "mount -t cifs //s/x /m -o username=bob,pass=«hunter2»,vers=3",
    "openssl pkcs12 -in x -passin pass:«hunter2»",
    "openssl passwd -6 «hunter2»",
    "keytool -list -storepass «hunter2» -keypass «hunter3»",
    "curl -u bob:«hunter2» https://x",
    "curl --proxy-user bob:«hunter2» https://x",
    "lftp -u bob,«hunter2» ftp.example",
    "htpasswd -bc f bob «hunter2»",
    "snmpwalk -v2c -c «hunter2» host",
    "ipmitool -H h -U root -P «hunter2» power on",
    "unzip -P «hunter2» a.zip",
    "7z x -p«hunter2» a.7z",
    "ssh-keygen -t rsa -N «hunter2» -f x",
    "vault login «hunter2-hunter2»",
    "vault operator unseal «0f1e2d3c4b5a»",
    "kubectl create secret generic x --from-literal=any=«hunter2»",
    "helm upgrade x y --set db.password=«hunter2»",
    "rabbitmqctl add_user bob «hunter2»",
    "nmcli dev wifi connect x password «hunter2»",
    "CREATE USER bob IDENTIFIED BY '«hunter2»'",
    "plink -ssh bob@h -pw «hunter2» ls",
    "iscsiadm -m node -o update -n node.session.auth.password -v «hunter2»",
    "mc alias set m https://s.example bob «hunter2-two»",
    "xfreerdp /u:bob /p:«hunter2» /v:h",
];

/// Tokens of vendors, and hashes.
const TOKENS: &[&str] = &[
    "«ghu_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9a»",
    "«github_pat_11ABCDE0Y0aB3dE5gH7jK9_mN1pQ3sT5»",
    "«glrt-aB3dE5gH7jK9mN1pQ3sT»",
    "«xoxe-1-aB3dE5gH7jK9mN1pQ3sT»",
    "«AKIAQ7W8E9R0T1Y2U3I4»",
    "«sk-proj-aB3dE5gH7jK9mN1pQ3sT5vW7yZ9a»",
    "«hf_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9aB3dE5»",
    "«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»",
    "«rk_live_aB3dE5gH7jK9mN1pQ3sT5vW7»",
    "«SK0f1e2d3c4b5a69788796a5b4c3d2e1f0»",
    "«NRAK-Q7W8E9R0T1Y2U3I4O5P6A7S8D9F»",
    "«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»",
    "«abcdefgh2ijklmno3pqrstuv4wxyzabc5defghij6klmnopq7rst»",
    "https://hooks.slack.example/services/«T0ABC1DEF/B0DEF2GHI/aB3dE5gH7jK9mN1pQ3sT5vW7»",
    "https://discord.example/api/webhooks/«1234567890/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9a»",
    "root:«$2y$10$aB3dE5gH7jK9mN1pQ3sT5uW7yZ9aB3dE5gH7jK9mN1pQ3sT5vW7yZ»",
    "x «$argon2id$v=19$m=65536,t=3,p=4$aB3dE5gH7jK9mN1p$Q3sT5vW7yZ9aB3dE5gH7jK9mN1pQ3sT5»",
    "{SSHA}«aB3dE5gH7jK9mN1pQ3sT5vW7yZ9aB3dE»",
    "Authorization: Digest username=\"b\", nonce=\"n\", response=\"«0f1e2d3c4b5a69788796a5b4c3d2e1f0»\"",
];

/// Letters that are written in other ways.
const SPELLINGS: &[&str] = &[
    "pass\u{1b}(Bword=«hunter2»",
    "\u{1b}]8;;http://x\u{7}password\u{1b}]8;;\u{7}=«hunter2»",
    "pass\u{9b}31mword=«hunter2»",
    "pass\u{ad}word=«hunter2»",
    "pass\u{2060}word=«hunter2»",
    "ｐａｓｓｗｏｒｄ＝«hunter2»",
    "pass\rword=«hunter2»",
    "password=\r«hunter2»",
    "x\rpwd=«hunter2»",
    "passx\u{8}word=«hunter2»",
    "70 61 73 73 77 6f 72 64 3d «68 75 6e 74 65 72 32»",
    "00000000: 7061 7373 776f 7264 3d«68 756e 7465 7232»  password=«hunter2»",
    "70617373776f72643d«68756e74657232»",
    "password&#61;«hunter2»",
    "password%253D«hunter2»",
    "tool -Z «Sp4rrow!Hill9»",
];

/// The text without its marks, and the secrets in it.
fn planted(shape: &str) -> (String, Vec<String>) {
    let secrets = shape.split('«').skip(1).filter_map(|rest| rest.split('»').next());
    (shape.replace(['«', '»'], ""), secrets.map(str::to_owned).collect())
}

fn squeezed(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace() && !letter.is_control()).collect()
}

/// Everything that is shown of `text`.
fn outputs(text: &str) -> [String; 2] {
    let evidence = Evidence::of_text(text);
    let piece = evidence.pieces[0].text().unwrap_or_default().to_owned();
    let proof: Vec<String> =
        diagnose(&evidence).proof.iter().map(|proof| proof.text.to_string()).collect();
    [redact(text).text.into_string(), piece + "\n" + &proof.join("\n")]
}

pub(super) fn survivors(shapes: &[&str]) -> Vec<String> {
    let mut survivors = Vec::new();
    for shape in shapes {
        let (text, secrets) = planted(shape);
        assert!(!secrets.is_empty(), "{shape}");
        let deciding = "timeout: failed to run command 'oras': No such file or directory";
        for text in [text.clone(), format!("{deciding} {text}"), format!("{text} {deciding}")] {
            let outputs = outputs(&text).map(|output| squeezed(&output));
            let survives =
                |secret: &String| outputs.iter().any(|output| output.contains(&squeezed(secret)));
            if secrets.iter().any(survives) {
                survivors.push(format!("{text:?} -> {:?}", redact(&text).text.as_str()));
                break;
            }
        }
    }
    survivors
}

fn assert_none_survives(shapes: &[&str]) {
    let survivors = survivors(shapes);
    assert!(survivors.is_empty(), "{} survive:\n{}", survivors.len(), survivors.join("\n"));
}

#[test]
fn values_of_secret_names_never_survive() {
    assert_none_survives(NAMES);
}

#[test]
fn secrets_in_documents_never_survive() {
    assert_none_survives(DOCUMENTS);
}

#[test]
fn passwords_on_command_lines_never_survive() {
    assert_none_survives(COMMANDS);
}

#[test]
fn tokens_without_names_never_survive() {
    assert_none_survives(TOKENS);
}

#[test]
fn secrets_in_other_spellings_never_survive() {
    assert_none_survives(SPELLINGS);
}
