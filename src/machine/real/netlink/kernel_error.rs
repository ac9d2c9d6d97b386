//! What the kernel says when it refuses a netlink request: an error number and, on most kernels, words.

use std::io;

use netlink_packet_core::ErrorMessage;
use nix::errno::Errno;
use thiserror::Error;

/// `NLM_F_CAPPED`: of the request only its header is repeated.
const CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: attributes follow the repeated request.
const HAS_ATTRIBUTES: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`: the attribute that holds the words.
const MESSAGE: u16 = 1;
/// The type of an attribute without its flags.
const TYPE_MASK: u16 = 0x3fff;
const HEADER_BYTES: usize = 16;

/// The kernel's refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{}", words(.message), .errno.desc())]
pub(crate) struct KernelError {
    /// The error number.
    pub(crate) errno: Errno,
    /// The kernel's own words.
    pub(crate) message: Option<String>,
}

fn words(message: &Option<String>) -> String {
    message.as_ref().map_or_else(String::new, |message| format!("{message}: "))
}

impl KernelError {
    /// Reads an error message that came with `flags` in its header.
    pub(super) fn parse(flags: u16, error: &ErrorMessage) -> Self {
        let errno = Errno::from_raw(error.raw_code().saturating_abs());
        let message = (flags & HAS_ATTRIBUTES != 0).then(|| words_in(flags, &error.header)).flatten();
        Self { errno, message }
    }
}

impl From<KernelError> for io::Error {
    fn from(error: KernelError) -> Self {
        // Its own text, not that of the standard library, which repeats the number.
        Self::new(Self::from(error.errno).kind(), error)
    }
}

fn words_in(flags: u16, payload: &[u8]) -> Option<String> {
    let request_bytes = u32::from_ne_bytes(payload.get(..4)?.try_into().ok()?);
    let repeated = if flags & CAPPED == 0 { usize::try_from(request_bytes).ok()? } else { HEADER_BYTES };
    let mut rest = payload.get(aligned(repeated)..)?;
    while let Some(header) = rest.get(..4) {
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & TYPE_MASK;
        let value = rest.get(4..length)?;
        if kind == MESSAGE {
            let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
            return Some(String::from_utf8_lossy(text).trim_end_matches('.').to_owned());
        }
        rest = rest.get(aligned(length)..)?;
    }
    None
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).unwrap();
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn refusal(request_bytes: u32, repeated: usize, attributes: &[u8]) -> ErrorMessage {
        let mut header = request_bytes.to_ne_bytes().to_vec();
        header.resize(repeated, 0);
        header.extend(attributes);
        let mut error = ErrorMessage::default();
        error.code = std::num::NonZeroI32::new(-22);
        error.header = header;
        error
    }

    #[test]
    fn the_kernels_words_are_found_behind_the_request() {
        let attributes = [attribute(2, &[0; 4]), attribute(1, b"mtu greater than device maximum\0")].concat();
        for (flags, repeated) in [(HAS_ATTRIBUTES, 36), (HAS_ATTRIBUTES | CAPPED, 16)] {
            let error = KernelError::parse(flags, &refusal(34, repeated, &attributes));
            assert_eq!(error.to_string(), "mtu greater than device maximum: Invalid argument");
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_refusal_without_words_is_its_number() {
        let error = KernelError::parse(0, &refusal(32, 32, &[]));
        assert_eq!(error.errno, Errno::EINVAL);
        assert_eq!(io::Error::from(error).to_string(), "Invalid argument");
    }

    #[test]
    fn bytes_that_make_no_sense_are_no_words() {
        for attributes in [&[][..], &[3, 0, 1, 0], &[255, 255, 1, 0], &[0, 0, 0, 0]] {
            assert_eq!(KernelError::parse(HAS_ATTRIBUTES, &refusal(16, 16, attributes)).message, None);
        }
        assert_eq!(KernelError::parse(HAS_ATTRIBUTES, &refusal(u32::MAX, 16, &[])).message, None);
    }
}
