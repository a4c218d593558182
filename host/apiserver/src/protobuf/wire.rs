//! The protobuf wire format: varints, fixed numbers and length-delimited bytes.

use super::ProtobufError;

/// The value behind a tag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    /// Skipped: no field uses it.
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub(super) fn bytes(&self, field: &str) -> Result<&'a [u8], ProtobufError> {
        match self {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(ProtobufError::Encoding(field.to_owned())),
        }
    }

    pub(super) fn text(&self, field: &str) -> Result<String, ProtobufError> {
        let bytes = self.bytes(field)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Utf8(field.to_owned()))
    }

    pub(super) fn varint(&self, field: &str) -> Result<u64, ProtobufError> {
        match self {
            Payload::Varint(number) => Ok(*number),
            // A map entry leaves out values that are zero.
            Payload::Bytes([]) => Ok(0),
            _ => Err(ProtobufError::Encoding(field.to_owned())),
        }
    }

    pub(super) fn double(&self, field: &str) -> Result<f64, ProtobufError> {
        match self {
            Payload::Fixed64(bytes) => Ok(f64::from_le_bytes(*bytes)),
            _ => Err(ProtobufError::Encoding(field.to_owned())),
        }
    }
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(super) fn next(&mut self) -> Result<Option<(u32, Payload<'a>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::Encoding("tag".to_owned()))?;
        let payload = match tag & 7 {
            0 => Payload::Varint(self.varint()?),
            1 => Payload::Fixed64(self.fixed()?),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
                self.rest = rest;
                Payload::Bytes(bytes)
            }
            5 => {
                self.fixed::<4>()?;
                Payload::Fixed32
            }
            // Groups were never used by these types.
            _ => return Err(ProtobufError::Encoding(format!("number {number}"))),
        };
        Ok(Some((number, payload)))
    }

    /// The next number of a packed list.
    pub(super) fn packed(&mut self) -> Result<Option<u64>, ProtobufError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0u64;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(ProtobufError::Truncated)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }
}
