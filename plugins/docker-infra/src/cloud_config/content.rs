//! Decodes the content of a file.

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
fn base64(text: &str) -> Result<Vec<u8>, &'static str> {
    const BAD: &str = "the content is not base64";
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    let mut padded = false;
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padded = true;
                continue;
            }
            _ => return Err(BAD),
        };
        if padded {
            return Err(BAD);
        }
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count & 0xff) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // One letter alone in the last group of four makes no byte.
    if count == 6 { Err(BAD) } else { Ok(out) }
}

/// RFC 1952, one member.
fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
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
