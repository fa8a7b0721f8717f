//! The serial log, from a blob host that knows nothing of our token.

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

/// A log that goes on beyond this is read no further.
const MOST: usize = 256 * 1024 * 1024;

/// The blob grows by pages, and what the guest has not written of the last one is NUL.
const PAGE: usize = 512;

impl Arm {
    /// The last `at_most` bytes of a serial log, without the NULs that fill its last page.
    ///
    /// Blob storage knows no ranges from the end. So the beginning is asked for, which mostly is
    /// all there is, and otherwise says how much there is.
    pub async fn serial_log(
        &self,
        address: &SasAddress,
        at_most: usize,
    ) -> Result<SerialLog, ArmError> {
        let read = self.serial_log_unless(address, at_most, None).await?;
        Ok(read.map_or(SerialLog::Absent, |(log, _)| log))
    }

    /// The same, unless it is still as it was: nothing then. With it comes what to ask with next time,
    /// if the host says so.
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
            // It was written anew in between, and is shorter now.
            (Part::Empty, _) => self.part(address, Asked::default(), window).await?,
            read => read,
        };
        Ok(Some((part.into_log(at_most), version)))
    }

    /// One request. Of an answer that heeds no range, the end is kept.
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

/// What of a blob is asked for.
#[derive(Default)]
struct Asked<'a> {
    range: Option<(usize, usize)>,
    /// Only if it is not this.
    unless: Option<&'a str>,
}

/// What one request gave.
enum Part {
    Unchanged,
    /// A range, of so much.
    Some {
        bytes: Bytes,
        total: Option<usize>,
        first: usize,
    },
    /// The end of all there is.
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

/// `bytes 0-99/1234`
fn total(headers: &Headers) -> Option<usize> {
    let range = headers.get_optional_str(&HeaderName::from_static("content-range"))?;
    range.rsplit_once('/')?.1.trim().parse().ok()
}

/// The last bytes of a body, and whether there were others before.
async fn tail(mut body: AsyncResponseBody, at_most: usize) -> Result<(Bytes, bool), ArmError> {
    let mut kept: Vec<u8> = Vec::new();
    let mut read = 0;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.map_err(|error| ArmError::unanswered(ATTEMPTED, error))?;
        read += chunk.len();
        kept.extend_from_slice(&chunk);
        // Now and then, so that not every chunk moves everything.
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
