//! Rule `vendor-token`.
//!
//! Removes: access tokens that begin with their vendor's mark, since images, charts and packages are
//! fetched with them during a bootstrap; and tokens of vendors without a mark whose form is their own.
//!
//! Leaves alone: the mark without a token after it.

use std::ops::Range;
use std::sync::LazyLock;

use crate::redaction::scan::Scan;
use crate::redaction::shape::Mix;
use crate::redaction::value;
use crate::redaction::view::View;

const RULE: &str = "vendor-token";

/// The marks, and the fewest letters that follow one in a token that may have been cut.
const MARKS: &[(&str, usize)] = &[
    // GitHub, GitLab, Bitbucket, Atlassian
    ("ghp_", 10),
    ("gho_", 10),
    ("ghu_", 10),
    ("ghs_", 10),
    ("ghr_", 10),
    ("github_pat_", 10),
    ("glpat-", 10),
    ("gldt-", 10),
    ("glrt-", 10),
    ("glcbt-", 10),
    ("glptt-", 10),
    ("glft-", 10),
    ("glsoat-", 10),
    ("glimt-", 10),
    ("glagent-", 10),
    ("gloas-", 10),
    ("glffct-", 10),
    ("GR1348941", 16),
    ("glrtr-", 10),
    ("ATATT3x", 16),
    ("ATBB", 24),
    ("ATCTT3x", 16),
    ("BBDC-", 20),
    // Slack, Discord, Telegram and other messengers
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxc-", 10),
    ("xoxd-", 10),
    ("xoxe-", 10),
    ("xoxe.", 10),
    ("xoxo-", 10),
    ("xoxp-", 10),
    ("xoxr-", 10),
    ("xoxs-", 10),
    ("xapp-", 10),
    // Registries of images and packages
    ("dckr_pat_", 10),
    ("dckr_oat_", 10),
    ("npm_", 20),
    ("pypi-", 16),
    ("rubygems_", 16),
    ("oy2", 40),
    ("nvapi-", 10),
    ("hf_", 24),
    ("r8_", 24),
    ("cio", 32),
    ("AKCp", 32),
    ("cmVmdGtuOj", 24),
    // Clouds
    ("AKIA", 12),
    ("ASIA", 12),
    ("ABIA", 12),
    ("ACCA", 12),
    ("AIza", 24),
    ("ya29.", 16),
    ("GOCSPX-", 16),
    ("dop_v1_", 16),
    ("doo_v1_", 16),
    ("dor_v1_", 16),
    ("dapi", 28),
    ("dkea", 28),
    ("LTAI", 16),
    ("tskey-", 10),
    ("hvs.", 16),
    ("hvb.", 16),
    ("hvr.", 16),
    ("pul-", 32),
    ("fm1_", 24),
    ("fm2_", 24),
    ("fo1_", 24),
    ("dp.pt.", 24),
    ("dp.st.", 24),
    ("dp.ct.", 24),
    ("sbp_", 24),
    ("vercel_", 20),
    ("hcloud", 40),
    ("sgp_", 24),
    ("ory_", 24),
    ("ops_eyJ", 16),
    ("cfk_", 24),
    ("cfut_", 24),
    ("v1.0-", 60),
    ("sha256~", 24),
    ("k8s-aws-v1.", 24),
    ("s.", 24),
    ("HRKU-", 24),
    ("AVNS_", 16),
    ("akab-", 16),
    ("pscale_", 24),
    ("sb_secret_", 16),
    ("CCIPAT_", 24),
    ("bkua_", 24),
    ("squ_", 32),
    ("sqp_", 32),
    ("sqa_", 32),
    ("dp.said.", 24),
    ("dp.scim.", 24),
    ("dp.audit.", 24),
    // Services
    ("eyJrIjoi", 40),
    ("lsv2_pt_", 24),
    ("lsv2_sk_", 24),
    ("hcaik_", 24),
    ("pnu_", 24),
    ("rdme_", 24),
    ("shippo_live_", 24),
    ("sk-ant-", 16),
    ("sk-proj-", 16),
    ("sk-or-", 16),
    ("sk-", 20),
    ("gsk_", 20),
    ("pplx-", 20),
    ("xai-", 24),
    ("sk_live_", 10),
    ("sk_test_", 10),
    ("rk_live_", 10),
    ("rk_test_", 10),
    ("whsec_", 16),
    ("SG.", 20),
    ("key-", 32),
    ("xkeysib-", 24),
    ("mlsn.", 24),
    ("re_", 24),
    ("pat-", 32),
    ("shpat_", 16),
    ("shpss_", 16),
    ("shpca_", 16),
    ("shppa_", 16),
    ("sq0atp-", 16),
    ("sq0csp-", 16),
    ("EAAA", 40),
    ("lin_api_", 16),
    ("ntn_", 24),
    ("secret_", 32),
    ("figd_", 16),
    ("PMAK-", 16),
    ("NRAK-", 16),
    ("NRJS-", 16),
    ("NRII-", 16),
    ("glc_", 20),
    ("glsa_", 20),
    ("sntrys_", 16),
    ("sntryu_", 16),
    ("phc_", 24),
    ("phx_", 24),
    ("CFPAT-", 16),
    ("dt0c01.", 16),
    ("dt0s01.", 16),
    ("Atzr|", 24),
    ("AGE-SECRET-KEY-1", 16),
    ("AGE-SECRET-KEY-PQ-1", 16),
    ("rnd_", 24),
    ("ptr_", 32),
    ("tfp_", 24),
    ("ubi_", 24),
    ("ctx7sk", 16),
    ("apify_api_", 16),
    ("duffel_", 24),
    ("ico-", 28),
    ("sl.", 60),
    ("SCW", 32),
    ("EZAK", 32),
    ("EZTK", 32),
    ("AC", 32),
    ("SK", 32),
];

/// Marks, and the fewest letters that follow each.
type Marks = Vec<(&'static [u8], usize)>;

/// The marks by their first letter, the longest first.
static BY_FIRST_LETTER: LazyLock<Vec<Marks>> = LazyLock::new(|| {
    let mut table = vec![Vec::new(); 256];
    for (mark, shortest) in MARKS {
        table[usize::from(mark.as_bytes()[0])].push((mark.as_bytes(), *shortest));
    }
    for marks in &mut table {
        marks.sort_by_key(|(mark, _)| std::cmp::Reverse(mark.len()));
    }
    table
});

/// How many letters after a mark decide whether it begins a token.
const LONGEST_JUDGED: usize = 96;

/// Shorter runs of small letters and digits are names.
const SHORTEST_UNMARKED: usize = 36;

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Looks at the beginning of a run of letters, and at every part of it that could begin a token.
pub(in crate::redaction) fn examine(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    let mut from = run.start;
    while from < run.end {
        let is_start =
            from == run.start || !view.before(from).is_ascii_alphanumeric() || view.is_break(from);
        if is_start && let Some(end) = token_end(view, from) {
            scan.strike(from..end, RULE);
            from = end.max(from + 1);
            continue;
        }
        let stop = view.next_break(from + 1).min(run.end);
        let letters = view.count_while(from + 1..stop, |byte| byte.is_ascii_alphanumeric());
        from = (from + letters + 2).min(stop);
    }
    examine_without_mark(scan, run);
}

/// At `AKIA` and `ASIA`: the id of an access key of AWS, which is shorter than the runs that are looked
/// at.
pub(in crate::redaction) fn examine_access_key(scan: &mut Scan<'_>, anchor: Range<usize>) {
    let view = scan.view;
    let is_inside =
        view.before(anchor.start).is_ascii_alphanumeric() && !view.is_break(anchor.start);
    if !is_inside && let Some(end) = token_end(view, anchor.start) {
        scan.strike(anchor.start..end, RULE);
    }
}

/// The end of the token that begins at `start` with a mark.
fn token_end(view: &View, start: usize) -> Option<usize> {
    let rest = &view.bytes()[start..];
    let marks = &BY_FIRST_LETTER[usize::from(*rest.first()?)];
    // The second letter is compared first, since it tells most of them apart.
    let (mark, shortest) =
        marks.iter().find(|(mark, _)| rest.get(1) == Some(&mark[1]) && rest.starts_with(mark))?;
    let body = start + mark.len();
    // Only so much is judged; a mark may be followed by any number of letters, and by more marks.
    let near = view.slice(body..view.len().min(body + LONGEST_JUDGED));
    let mut length = near.iter().take_while(|byte| is_letter(**byte)).count();
    while length > 0 && near[length - 1] == b'.' {
        length -= 1;
    }
    if length < *shortest || !fits(mark, &near[..length]) {
        return None;
    }
    let mut end = value::end_of_letters(view, body, 20, is_letter);
    while view.before(end) == b'.' {
        end -= 1;
    }
    (end >= body + *shortest).then(|| pair_end(view, mark, end))
}

/// The end of the token that follows the id of its account: `AC…:token`.
fn pair_end(view: &View, mark: &[u8], end: usize) -> usize {
    let is_account = matches!(mark, b"AC" | b"SK") && view.at(end) == b':';
    let limit = view.len().min(end + LONGEST_JUDGED);
    let letters =
        view.count_while((end + 1).min(limit)..limit, |byte| byte.is_ascii_alphanumeric());
    if is_account && letters >= MAILCHIMP { end + 1 + letters } else { end }
}

/// Whether letters can follow a mark. Short marks also begin words and names, which have hardly any
/// digits; hexadecimal tokens have nothing else.
fn fits(mark: &[u8], letters: &[u8]) -> bool {
    // Databricks adds the number of a replica.
    let letters = match letters {
        [body @ .., b'-', last] if mark == b"dapi" && last.is_ascii_digit() => body,
        _ => letters,
    };
    let is_hexadecimal = letters.iter().all(u8::is_ascii_hexdigit);
    let mix = Mix::of(letters);
    match mark {
        b"AC" | b"SK" | b"key-" | b"dapi" | b"dkea" | b"ico-" => is_hexadecimal && mix.digits >= 4,
        b"AKIA" | b"ASIA" | b"ABIA" | b"ACCA" => mix.lower == 0 && mix.digits > 0,
        b"AGE-SECRET-KEY-1" | b"AGE-SECRET-KEY-PQ-1" => true,
        _ if mark.last().is_some_and(|last| b"_-.".contains(last)) && mark.len() > 4 => {
            mix.digits > 0
        }
        _ => mix.digits >= 2 && mix.changes * 6 >= letters.len(),
    }
}

/// Small letters and digits in no order, too many for a name: a token of Azure DevOps, a function's
/// key. Hexadecimal digits alone are a hash.
fn examine_without_mark(scan: &mut Scan<'_>, run: Range<usize>) {
    let view = scan.view;
    if run.len() <= LONGEST_JUDGED && is_of_known_form(view.slice(run.clone())) {
        scan.strike(run, RULE);
        return;
    }
    let mut start = run.start;
    while start < run.end {
        let length = view.count_while(start..run.end, |byte| byte.is_ascii_alphanumeric());
        if length >= SHORTEST_UNMARKED && is_unmarked(view.slice(start..start + length)) {
            scan.strike(start..start + length, RULE);
        }
        start += length + 1;
    }
}

/// A product key of Windows, five groups of five, or a recovery password of `BitLocker`, eight of six digits.
fn is_in_groups(run: &[u8]) -> bool {
    let groups = |count: usize, length: usize| {
        run.len() == count * (length + 1) - 1
            && run.split(|byte| *byte == b'-').all(|group| group.len() == length)
    };
    if groups(8, 6) {
        return Mix::of(run).digits == 48;
    }
    let is_product = |mix: Mix| mix.lower == 0 && mix.digits >= 3 && mix.upper >= 5;
    groups(5, 5) && is_product(Mix::of(run))
}

/// The digits of a key of Mailchimp, before `-us12`, which says where it is used.
const MAILCHIMP: usize = 32;

/// Whether the run from `start` has the form of a key of Mailchimp, or of a bot's token of Discord.
fn is_of_known_form(run: &[u8]) -> bool {
    let mailchimp = run.len() > MAILCHIMP + 3
        && run[..MAILCHIMP].iter().all(u8::is_ascii_hexdigit)
        && run[MAILCHIMP..].starts_with(b"-us")
        && run[MAILCHIMP + 3..].iter().all(u8::is_ascii_digit);
    let parts: Vec<&[u8]> = run.splitn(4, |byte| *byte == b'.').collect();
    let discord = matches!(parts.as_slice(), [id, time, code]
        if (24..=28).contains(&id.len()) && time.len() == 6 && code.len() >= 27
            && id.iter().all(u8::is_ascii_alphanumeric)
            && Mix::of(code).is_random());
    mailchimp || discord || is_in_groups(run)
}

fn is_unmarked(letters: &[u8]) -> bool {
    let mix = Mix::of(letters);
    mix.upper == 0
        && mix.digits * 10 >= mix.length
        && mix.changes * 5 >= mix.length
        && letters.iter().filter(|byte| matches!(byte, b'g'..=b'z')).count() * 8 >= mix.length
}

#[cfg(test)]
mod tests {
    use super::super::{assert_kept, redacted};

    #[test]
    fn a_marked_token_goes() {
        for token in [
            "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9a",
            "xapp-1-A0B1C2D3E4-0123456789-0f1e2d3c4b5a",
            "AIzaSyaB3dE5gH7jK9mN1pQ3sT5vW7yZ9aB3dE5",
            "SG.aB3dE5gH7jK9mN1pQ3sT5v.W7yZ9aB3dE5gH7jK9mN1pQ3sT5vW7y",
            "AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
            "dapi0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "hvs.CAESIaB3dE5gH7jK9mN1pQ3sT5vW7yZ9",
            "abcdefgh2ijklmno3pqrstuv4wxyzabc5defghij6klmnopq7rst",
        ] {
            assert_eq!(redacted(&format!("with {token}.")), "with [redacted vendor-token].");
        }
    }

    #[test]
    fn the_mark_alone_and_words_stay() {
        assert_kept(&[
            "tokens begin with ghp_ or gho_",
            "nvapi-server",
            "sk-learn-integration-tests-of-the-week",
            "key-value-store-of-the-cluster-in-eastus",
            "SKU_NOT_AVAILABLE_IN_REGION_EASTUS2",
            "re_evaluation_of_the_schedule_is_pending",
        ]);
    }
}
