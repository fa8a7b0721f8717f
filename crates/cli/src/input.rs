//! Reads input files: with a size limit, and with a clear error for a file that is not text.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::failure::Failure;
use crate::request::{Input, Place};

/// A larger total input is refused rather than cut: the missing part could contain the decisive line.
const LIMIT: u64 = 64 * 1024 * 1024;
/// The number of bytes that decide whether a file is text.
const SAMPLE: usize = 64 * 1024;

/// A text and its name.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) serial: bool,
    /// Empty if the file was empty.
    pub(crate) text: String,
}

/// Reads all inputs. An empty file among others counts as missing evidence; a single empty file is an error.
pub(crate) fn read(inputs: &[Input]) -> Result<Vec<Document>, Failure> {
    let mut left = LIMIT;
    let mut texts = Vec::new();
    for input in inputs {
        let name = match &input.place {
            Place::StandardInput => "stdin".to_owned(),
            Place::File(path) => path.display().to_string(),
        };
        let bytes = match &input.place {
            Place::StandardInput => bounded(std::io::stdin().lock(), left, &name)?,
            Place::File(path) => bounded(open(path, &name)?, left, &name)?,
        };
        left = left.saturating_sub(bytes.len() as u64);
        texts.push(Document { text: decode(bytes, &name)?, name, serial: input.serial });
    }
    if texts.iter().all(|text| text.text.is_empty()) {
        let names: Vec<String> = texts.iter().map(|text| format!("`{}`", text.name)).collect();
        return Err(Failure::input(format!("no text in {}", names.join(", ")))
            .hint("check the command that wrote it for errors, and run it again"));
    }
    Ok(texts)
}

fn open(path: &Path, name: &str) -> Result<File, Failure> {
    let refused = |error: std::io::Error| {
        let failure = Failure::input(format!("cannot read `{name}`")).detail(error.to_string());
        match error.kind() {
            ErrorKind::NotFound => failure.hint("check the file name and the directory"),
            ErrorKind::PermissionDenied => {
                failure.hint("only root can read many logs of a node: use sudo")
            }
            _ => failure,
        }
    };
    let file = File::open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.is_dir() {
        return Err(Failure::input(format!("`{name}` is a directory"))
            .hint("pass the files in it; bringup treats all files as evidence of one node"));
    }
    Ok(file)
}

fn bounded(reader: impl Read, left: u64, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    reader.take(left + 1).read_to_end(&mut bytes).map_err(|error| {
        Failure::input(format!("cannot read `{name}` to its end"))
            .detail(format!("{error}, after byte {}", bytes.len()))
    })?;
    if bytes.len() as u64 > left {
        return Err(Failure::input(format!("the input is larger than {} MiB", LIMIT / 1024 / 1024))
            .detail(format!("`{name}` exceeds the limit"))
            .hint("pass the end of the log, where a bootstrap fails: `tail -c 16M FILE | bringup diagnose`"));
    }
    Ok(bytes)
}

/// Decodes UTF-8, valid or not, or UTF-16, which PowerShell writes.
fn decode(bytes: Vec<u8>, name: &str) -> Result<String, Failure> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => {
            refuse_binary(&bytes, name)?;
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
    };
    let is_blank = |character: char| character.is_whitespace() || character == '\0';
    Ok(if text.chars().all(is_blank) { String::new() } else { text })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let (pairs, _) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units)
}

/// Serial console logs contain single control bytes and NUL at the end; a file with mostly such bytes is not
/// text.
fn refuse_binary(bytes: &[u8], name: &str) -> Result<(), Failure> {
    for (magic, kind, hint) in [
        (&[0x1f, 0x8b][..], "gzip", "unpack it first: `gunzip -c FILE | bringup diagnose`"),
        (b"PK\x03\x04", "zip", "unpack it first: `unzip -p FILE NAME | bringup diagnose`"),
    ] {
        if bytes.starts_with(magic) {
            return Err(Failure::input(format!("`{name}` is a {kind} file, not text")).hint(hint));
        }
    }
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let sample = &bytes[..end.min(SAMPLE)];
    let strange =
        |byte: u8| byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b);
    let controls = sample.iter().filter(|byte| strange(**byte)).count();
    let broken: usize = sample.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    if (controls + broken) * 10 <= sample.len() * 3 {
        return Ok(());
    }
    let valid = sample.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    let first = sample.iter().position(|byte| strange(*byte)).unwrap_or(valid).min(valid);
    Err(Failure::input(format!("`{name}` is not text"))
        .detail(format!(
            "{} of its first {} bytes are not text, the first of them at byte {first}",
            controls + broken,
            sample.len(),
        ))
        .hint("pass logs, error messages or JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Option<String> {
        decode(bytes.to_vec(), "x").ok()
    }

    #[test]
    fn broken_utf_8_and_nul_tails_are_text() {
        assert_eq!(
            text(b"caf\xe9 failed\0\0\0\0\0\0\0\0\0").unwrap(),
            "caf\u{fffd} failed\0\0\0\0\0\0\0\0\0"
        );
        assert_eq!(text(b"\xef\xbb\xbfplain").unwrap(), "plain");
    }

    #[test]
    fn what_powershell_writes_is_text() {
        assert_eq!(text(b"\xff\xfeo\0k\0").unwrap(), "ok");
        assert_eq!(text(b"\xfe\xff\0o\0k").unwrap(), "ok");
    }

    #[test]
    fn programs_and_archives_are_no_text() {
        assert!(text(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0\x01").is_none());
        assert!(text(b"\x1f\x8b\x08\0abc").is_none());
        let noise: Vec<u8> = (0..=255).collect();
        assert!(text(&noise).is_none());
    }

    #[test]
    fn blank_is_empty() {
        assert_eq!(text(b" \r\n\0\0").unwrap(), "");
        assert_eq!(text(b"").unwrap(), "");
    }

    #[test]
    fn more_than_the_limit_is_refused_with_what_to_do() {
        let refused = bounded(std::io::repeat(b'x'), 100, "big.log").unwrap_err().text();
        assert!(refused.contains("tail -c") && refused.contains("`big.log`"), "{refused}");
        assert_eq!(bounded(&b"abc"[..], 3, "x").unwrap(), b"abc");
    }
}
