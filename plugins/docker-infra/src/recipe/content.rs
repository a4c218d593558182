//! Decodes the content of a file.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;

/// What a compressed file may unpack to.
const LARGEST: usize = 4 << 20;

/// `encoding` as cloud-init spells it; empty and `text/plain` are the text itself.
pub fn decode(content: &str, encoding: &str) -> Result<Vec<u8>, &'static str> {
    match encoding.to_ascii_lowercase().as_str() {
        "" | "text/plain" => Ok(content.as_bytes().to_vec()),
        "b64" | "base64" => base64(content),
        "gz+b64" | "gz+base64" | "gzip+b64" | "gzip+base64" => gunzip(&base64(content)?),
        "gz" | "gzip" => gunzip(content.as_bytes()),
        _ => Err("the encoding is not known"),
    }
}

/// Standard alphabet; blanks and line ends are skipped, padding is optional.
pub fn base64(text: &str) -> Result<Vec<u8>, &'static str> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    ENGINE.decode(letters).map_err(|_| "the content is not base64")
}

/// RFC 1952, one member.
pub fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    const BAD: &str = "the content is not gzip";
    let header = bytes.get(..10).filter(|header| header.starts_with(&[0x1f, 0x8b, 8])).ok_or(BAD)?;
    let flags = header.get(3).copied().ok_or(BAD)?;
    let mut rest = bytes.get(10..).ok_or(BAD)?;
    if flags & 4 != 0 {
        let (length, tail) = rest.split_first_chunk::<2>().ok_or(BAD)?;
        rest = tail.get(usize::from(u16::from_le_bytes(*length))..).ok_or(BAD)?;
    }
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0).ok_or(BAD)?;
            rest = rest.get(end + 1..).ok_or(BAD)?;
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..).ok_or(BAD)?;
    }
    miniz_oxide::inflate::decompress_to_vec_with_limit(rest, LARGEST)
        .map_err(|_| "the content is not gzip, or unpacks to more than 4 MiB")
}

/// The content of a `data:` URL (RFC 2397), percent-encoded or base64.
pub fn data_url(url: &str) -> Result<Vec<u8>, &'static str> {
    let rest = url.strip_prefix("data:").ok_or("the source is not a data: URL")?;
    let (header, content) = rest.split_once(',').ok_or("the data: URL has no comma")?;
    let bytes = percent_decoded(content)?;
    if header.ends_with(";base64") {
        let text = String::from_utf8(bytes).map_err(|_| "the content is not base64")?;
        return base64(&text);
    }
    Ok(bytes)
}

fn percent_decoded(text: &str) -> Result<Vec<u8>, &'static str> {
    // The decoder leaves what is no escape as it is.
    let is_escape = |after: &str| after.as_bytes().get(..2).is_some_and(|code| code.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return Err("the data: URL has a broken escape");
    }
    Ok(percent_decode_str(text).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn data_urls_are_decoded() {
        assert_eq!(data_url("data:,a%20b%0A").unwrap(), b"a b\n");
        assert_eq!(data_url("data:text/plain;charset=utf-8;base64,aGk=").unwrap(), b"hi");
        assert_eq!(data_url("data:;base64,aGk%3D").unwrap(), b"hi");
        for bad in ["http://x", "data:x", "data:,%g0", "data:,%2", "data:;base64,%%"] {
            assert!(data_url(bad).is_err(), "{bad}");
        }
    }
}
