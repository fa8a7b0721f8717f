//! Rule `tool-password`.
//!
//! Removes: passwords that well-known programs take under short names, as a pair with the user's name,
//! or as one of their words: `docker login -p`, `sshpass -p`, `curl -u user:password`, `net user`,
//! `ConvertTo-SecureString`; and what is piped into programs that read a password. A trace of the shell
//! prints them like any other argument.
//!
//! Leaves alone: the same flags of other programs.

use std::ops::Range;

use super::super::anchors::Examine;
use crate::redaction::scan::Scan;
use crate::redaction::shape;
use crate::redaction::value;
use crate::redaction::view::View;

mod flags;
mod piped;
mod printed;
mod words;

const RULE: &str = "tool-password";

/// How far from the program its arguments are searched.
const LINE: usize = 400;

/// What calls this rule.
pub(in crate::redaction) const WORDS: &[(&str, Examine)] = &[
    ("sshpass", flags::examine),
    ("mysql", flags::examine),
    ("mariadb", flags::examine),
    ("psexec", flags::examine),
    ("schtasks", flags::examine),
    ("sqlcmd", flags::examine),
    ("osql", flags::examine),
    ("isql", flags::examine),
    ("bcp ", flags::examine),
    ("redis-cli", flags::examine),
    ("snmp", flags::examine),
    ("ldap", flags::examine),
    ("smbclient", flags::examine),
    ("rpcclient", flags::examine),
    ("smbget", flags::examine),
    ("net ads", flags::examine),
    ("net rpc", flags::examine),
    ("winexe", flags::examine),
    ("winrs", flags::examine),
    ("curl", flags::examine),
    ("ctr ", flags::examine),
    ("lftp", flags::examine),
    ("ncftp", flags::examine),
    ("unzip", flags::examine),
    ("zip ", flags::examine),
    ("7z ", flags::examine),
    ("7za ", flags::examine),
    ("rar ", flags::examine),
    ("mongo", flags::examine),
    ("cqlsh", flags::examine),
    ("ipmitool", flags::examine),
    ("racadm", flags::examine),
    ("freerdp", flags::examine),
    ("rdesktop", flags::examine),
    ("ipa-", flags::examine),
    ("ssh-keygen", flags::examine),
    ("mosquitto", flags::examine),
    ("certutil", flags::examine),
    ("iscsiadm", flags::examine),
    ("useradd", flags::examine),
    ("usermod", flags::examine),
    ("manage-bde", flags::examine),
    ("nmcli", flags::examine),
    ("sqlplus", flags::examine),
    ("openssl", flags::examine),
    ("adcli", flags::examine),
    ("requirepass", flags::examine),
    ("masterauth", flags::examine),
    ("auth_pass", flags::examine),
    ("rocommunity", flags::examine),
    ("rwcommunity", flags::examine),
    ("server community", flags::examine),
    ("server key", flags::examine),
    ("stats auth", flags::examine),
    ("netdom", flags::examine),
    ("az keyvault", flags::examine),
    ("put-parameter", flags::examine),
    ("gh secret", flags::examine),
    ("encrypt_string", flags::examine),
    ("add-generic-password", flags::examine),
    ("add-internet-password", flags::examine),
    ("iwconfig", flags::examine),
    ("http -a", flags::examine),
    ("https -a", flags::examine),
    ("login", flags::examine_login),
    (" -u ", flags::examine_user_and_password),
    (" '-u'", flags::examine_user_and_password),
    ("\"-u\"", flags::examine_user_and_password),
    ("-user", flags::examine_user),
    ("--creds", flags::examine_user),
    ("from-literal", flags::examine_literal),
    ("net use", words::examine_net),
    ("net.exe use", words::examine_net),
    ("pro attach", words::examine_certain),
    ("ua attach", words::examine_certain),
    ("htpasswd", words::examine_certain),
    ("rabbitmqctl", words::examine_certain),
    ("wpa_passphrase", words::examine_certain),
    ("bitsadmin", words::examine_certain),
    ("mc alias set", words::examine_certain),
    ("mc config host", words::examine_certain),
    ("vault", words::examine_vault),
    ("identified by", words::examine_next),
    ("identified with", words::examine_identified),
    (": xauth", words::examine_next),
    (": eap ", words::examine_next),
    ("mkpasswd", words::examine_hashed),
    ("user-secrets set", words::examine_certain),
    ("createuser ", words::examine_certain),
    (".azure.net/secrets/", printed::examine_vault_entry),
    (":5432:", words::examine_database_list),
    (":6432:", words::examine_database_list),
    (":3306:", words::examine_database_list),
    (":*:*:", words::examine_database_list),
    ("chpasswd", piped::examine_account_list),
    ("sudo -s", piped::examine),
    ("realm join", piped::examine),
    ("runas ", piped::examine),
    ("| passwd", piped::examine),
    ("-stdin", piped::examine),
    ("kinit", piped::examine),
    ("cryptsetup", piped::examine),
    ("--with-token", piped::examine),
    ("-fd 0", piped::examine),
    ("smbpasswd -s", piped::examine),
    ("to-securestring", words::examine_secure_string),
    ("consul kv put", words::examine_certain),
    ("etcdctl put", words::examine_certain),
    ("etcdctl set", words::examine_certain),
    ("secrets set", words::examine_assigned),
    ("config:set", words::examine_assigned),
    ("enter the code ", printed::examine_code),
    ("autologon.exe", words::examine_certain),
    ("autologon64.exe", words::examine_certain),
    ("autologon ", words::examine_certain),
    ("get secret", printed::examine_reader),
    ("secret show", printed::examine_reader),
    ("credential show", printed::examine_reader),
    (" keys list", printed::examine_reader),
    ("get-parameter", printed::examine_reader),
    ("get-secret-value", printed::examine_reader),
    ("versions access", printed::examine_reader),
    ("following 'random' passwords", printed::examine_banner),
    ("following random passwords", printed::examine_banner),
    ("following passwords", printed::examine_banner),
    ("ugfzc3dvcmq6", printed::examine_prompt),
    (",\"system:", printed::examine_static_token),
    (",kubelet-bootstrap,", printed::examine_static_token),
    ("user =", printed::examine_user_setting),
];

pub(super) use printed::examine_mail;

/// Removes the value that begins at or after `start`, unless it cannot be a password.
fn strike_value(scan: &mut Scan<'_>, start: usize) {
    let view = scan.view;
    let start = value::after_blanks(view, start);
    let start = next_element(view, start).unwrap_or(start);
    if view.at(start) == b'-' {
        return;
    }
    let range = value::at(view, start).range;
    if !is_innocent(view.slice(range.clone())) {
        scan.strike(range, RULE);
    }
}

/// Where the next element begins, if the quotation mark at `position` ends one of a list of arguments:
/// `'-p', 'value'`.
fn next_element(view: &View, position: usize) -> Option<usize> {
    let comma = value::after_blanks(view, position + 1);
    let next = value::after_blanks(view, comma + 1);
    (value::is_quote(view.at(position)) && view.at(comma) == b',' && value::is_quote(view.at(next)))
        .then_some(next)
}

/// Whether `text` cannot be a password. What is long is not looked at.
fn is_innocent(text: &[u8]) -> bool {
    text.len() <= shape::LONGEST_HARMLESS
        && (shape::is_no_password(text) || shape::is_placeholder(text))
}

/// The end of the command that `from` is in, as far as it is looked at.
fn command_end(view: &View, from: usize) -> usize {
    view.next_break(from).min(from + LINE).max(from).min(view.len())
}

/// Whether `word` begins as a command or an argument does.
fn begins(view: &View, word: &Range<usize>) -> bool {
    let before = view.before(word.start);
    view.is_break(word.start) || !(before.is_ascii_alphanumeric() || b"_-.".contains(&before))
}

#[cfg(test)]
mod tests;
