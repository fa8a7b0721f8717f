//! The serial log, from a blob host that must never receive our token.

use azure_core::Uuid;
use azure_core::http::headers::{HeaderName, Headers};
use azure_core::http::response::AsyncResponseBody;
use azure_core::http::{AsyncRawResponse, Method, Request};
use bytes::Bytes;
use futures::StreamExt as _;

use super::{Arm, USER_AGENT};
use crate::budget::Operation;
use crate::budget::retry_after;
use crate::error::{ArmError, ArmFailure, Refusal};
use crate::model::{SasAddress, SerialLog};

const ATTEMPTED: &str = "read the serial log";

/// A log longer than this is not read any further.
const MOST: usize = 256 * 1024 * 1024;

/// The blob grows in pages. The unwritten rest of the last page is NUL bytes.
const PAGE: usize = 512;

impl Arm {
    /// Reads the last `at_most` bytes of a serial log, without the NUL bytes at the end of its last page.
    ///
    /// Blob storage supports no ranges from the end. So the first request reads the beginning, which mostly
    /// is the whole log; otherwise its response contains the total size.
    pub async fn serial_log(
        &self,
        address: &SasAddress,
        at_most: usize,
    ) -> Result<SerialLog, ArmError> {
        let read = self.serial_log_unless(address, at_most, None).await?;
        Ok(read.map_or(SerialLog::Absent, |(log, _)| log))
    }

    /// Reads the log unless its version (etag) is still this one; none if so. Also returns the new version,
    /// if the host sends one.
    pub async fn serial_log_unless(
        &self,
        address: &SasAddress,
        at_most: usize,
        version: Option<&str>,
    ) -> Result<Option<(SerialLog, Option<String>)>, ArmError> {
        let at_most = at_most.clamp(1, MOST);
        let window = at_most + PAGE;
        let asked = Asked { range: Some((0, window - 1)), unless: version };
        let (part, version) = self.part(address, asked, window).await?;
        let total = match part {
            Part::Unchanged => return Ok(None),
            Part::Some { ref bytes, total: Some(total), .. } if total > bytes.len() => total,
            part => return Ok(Some((part.into_log(at_most), version))),
        };
        let asked = Asked { range: Some((total.saturating_sub(window), total - 1)), unless: None };
        let (part, version) = match self.part(address, asked, window).await? {
            // Between the two requests the log was replaced by a shorter one.
            (Part::Empty, _) => self.part(address, Asked::default(), window).await?,
            read => read,
        };
        Ok(Some((part.into_log(at_most), version)))
    }

    /// Sends one request. If the host ignores the range, the end of the body is returned.
    async fn part(
        &self,
        address: &SasAddress,
        asked: Asked<'_>,
        at_most: usize,
    ) -> Result<(Part, Option<String>), ArmError> {
        let Asked { range, unless } = asked;
        let mut request = Request::new(address.url().clone(), Method::Get);
        request.insert_header("user-agent", USER_AGENT);
        request.insert_header("x-ms-client-request-id", Uuid::new_v4().to_string());
        if let Some((first, last)) = range {
            request.insert_header("range", format!("bytes={first}-{last}"));
        }
        if let Some(version) = unless {
            request.insert_header("if-none-match", version.to_owned());
        }
        let response = self.transport.execute_request(&request).await.map_err(|error| {
            self.reads.count(Operation::GetSerialLog, None);
            ArmError::unanswered(ATTEMPTED, error)
        })?;
        let (status, headers, body) = AsyncRawResponse::deconstruct(response);
        let status = u16::from(status);
        self.reads.count(Operation::GetSerialLog, Some(status));
        let header = |name| headers.get_optional_str(&HeaderName::from_static(name));
        let code = || header("x-ms-error-code").map(str::to_owned);
        let part = match status {
            206 => {
                let (bytes, _) = tail(body, at_most).await?;
                let first = range.map_or(0, |(first, _)| first);
                Part::Some { bytes, total: total(&headers), first }
            }
            200 => {
                let (bytes, cut) = tail(body, at_most).await?;
                Part::Whole { bytes, cut }
            }
            304 => Part::Unchanged,
            416 => Part::Empty,
            404 => Part::Absent,
            403 => Part::Refused { code: code() },
            _ => {
                let refusal = Refusal {
                    status,
                    failure: ArmFailure { code: code(), ..ArmFailure::default() },
                    policy: None,
                    retry_after: header("retry-after")
                        .and_then(|value| retry_after(value, self.clock.now())),
                    request_id: header("x-ms-request-id").map(str::to_owned),
                };
                return Err(ArmError::refused(ATTEMPTED, refusal));
            }
        };
        Ok((part, header("etag").map(str::to_owned)))
    }
}

#[derive(Default)]
struct Asked<'a> {
    range: Option<(usize, usize)>,
    /// Only if the blob's version differs from this one.
    unless: Option<&'a str>,
}

/// The response to one request.
enum Part {
    Unchanged,
    /// A range, and the total size.
    Some {
        bytes: Bytes,
        total: Option<usize>,
        first: usize,
    },
    /// The end of the whole blob, because the host ignored the range.
    Whole {
        bytes: Bytes,
        cut: bool,
    },
    Empty,
    Absent,
    Refused {
        code: Option<String>,
    },
}

impl Part {
    fn into_log(self, at_most: usize) -> SerialLog {
        let tail = |bytes: &Bytes, cut: bool| {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let start = end.saturating_sub(at_most);
            SerialLog::Tail { bytes: bytes.slice(start..end), cut: cut || start > 0 }
        };
        match self {
            Self::Some { bytes, first, .. } => tail(&bytes, first > 0),
            Self::Whole { bytes, cut } => tail(&bytes, cut),
            Self::Empty => tail(&Bytes::new(), false),
            Self::Unchanged | Self::Absent => SerialLog::Absent,
            Self::Refused { code } => SerialLog::Refused { code },
        }
    }
}

/// The total size in a header such as `bytes 0-99/1234`.
fn total(headers: &Headers) -> Option<usize> {
    let range = headers.get_optional_str(&HeaderName::from_static("content-range"))?;
    range.rsplit_once('/')?.1.trim().parse().ok()
}

/// The last bytes of a body, and whether earlier bytes were dropped.
async fn tail(mut body: AsyncResponseBody, at_most: usize) -> Result<(Bytes, bool), ArmError> {
    let mut kept: Vec<u8> = Vec::new();
    let mut read = 0;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| ArmError::unanswered(ATTEMPTED, error))?;
        read += chunk.len();
        kept.extend_from_slice(&chunk);
        // Not for every chunk, because each time moves all bytes.
        if kept.len() > at_most.saturating_mul(2) {
            kept.drain(..kept.len() - at_most);
        }
        if read > MOST {
            break;
        }
    }
    kept.drain(..kept.len().saturating_sub(at_most));
    kept.shrink_to_fit();
    Ok((Bytes::from(kept), read > at_most))
}
