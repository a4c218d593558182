//! What a peer may send over HTTP/2 that nobody should: frames as bytes (RFC 9113), with compressed headers (RFC 7541).

/// Says that HTTP/2 begins, and that this side has no wishes.
#[must_use]
pub fn client_begins() -> Vec<u8> {
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), server_begins()].concat()
}

/// The same of a server.
#[must_use]
pub fn server_begins() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

/// One way to misbehave.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// For messages of tests.
    pub name: &'static str,
    /// What is sent in each round, from 0.
    pub round: fn(u32) -> Vec<u8>,
    /// Whether a connection has to end of it. Else it has to be refused, request by request.
    pub ends: bool,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `GET https://x/readyz`, but for the path: names and values of the static table.
const REQUEST: &[u8] = &[0x82, 0x87, 0x41, 1, b'x'];
/// `:status 200`.
const ANSWER: &[u8] = &[0x88];
/// The newest entry of the table of headers that were sent.
const NEWEST: u8 = 0x80 | 62;
/// Times that a bomb repeats it.
const BOMB: usize = 10_000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header; `kept` in the table.
fn header(name: &str, value: &[u8], kept: bool) -> Vec<u8> {
    let length = |bytes: usize| {
        // An integer with a prefix of seven bits.
        let byte = |bits: usize| u8::try_from(bits).unwrap_or(u8::MAX);
        let mut coded = vec![byte(bytes.min(127))];
        if let Some(mut rest) = bytes.checked_sub(127) {
            while rest > 127 {
                coded.push(byte(rest & 127 | 128));
                rest >>= 7;
            }
            coded.push(byte(rest));
        }
        coded
    };
    [&[if kept { 0x40 } else { 0 }][..], &length(name.len()), name.as_bytes(), &length(value.len()), value].concat()
}

/// The headers of a request that every API server answers.
fn ready() -> Vec<u8> {
    [REQUEST, &header(":path", b"/readyz", false)].concat()
}

/// A request that nobody need refuse, with some kilobytes of headers: what is sent here is well-formed.
#[must_use]
pub fn honest() -> Vec<u8> {
    repeating(&ready(), 5, 1, END_STREAM)
}

/// Headers that go on and on.
fn without_end(begun: &[u8], round: u32) -> Vec<u8> {
    let flood = header("x", &[b'x'; 8 << 10], false);
    match round {
        0 => frame(HEADERS, 0, 1, begun),
        _ => frame(CONTINUATION, 0, 1, &flood),
    }
}

/// Three kilobytes, so many times, in as many bytes. The table is as large as both sides have it from the beginning.
fn repeating(begun: &[u8], times: usize, stream: u32, flags: u8) -> Vec<u8> {
    let large = header("x", &[b'x'; 3 << 10], true);
    frame(HEADERS, END_HEADERS | flags, stream, &[begun, &large, &vec![NEWEST; times]].concat())
}

/// What a client may do to a server.
pub const OF_CLIENTS: [Attack; 3] = [
    Attack {
        name: "requests that are taken back at once",
        round: |round| {
            let each = |stream: u32| {
                let ask = frame(HEADERS, END_HEADERS | END_STREAM, stream, &ready());
                [ask, frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
            };
            (round * 100..(round + 1) * 100).flat_map(|request| each(2 * request + 1)).collect()
        },
        ends: true,
    },
    Attack { name: "headers without end", round: |round| without_end(&ready(), round), ends: true },
    Attack {
        name: "headers that unpack to megabytes",
        round: |round| repeating(&ready(), BOMB, 2 * round + 1, END_STREAM),
        ends: false,
    },
];

/// What a server may answer to the first request of a connection.
pub const OF_SERVERS: [Attack; 6] = [
    Attack { name: "headers without end", round: |round| without_end(ANSWER, round), ends: true },
    Attack {
        name: "headers that unpack to megabytes",
        round: |round| if round == 0 { repeating(ANSWER, BOMB, 1, 0) } else { Vec::new() },
        ends: false,
    },
    Attack {
        name: "no answer but a reset",
        round: |round| if round == 0 { frame(RST_STREAM, 0, 1, &2_u32.to_be_bytes()) } else { Vec::new() },
        ends: false,
    },
    Attack {
        name: "the end of the connection, announced",
        round: |round| if round == 0 { frame(GOAWAY, 0, 0, &[0; 8]) } else { Vec::new() },
        ends: false,
    },
    Attack {
        name: "more than was asked for at a time",
        round: |round| match round {
            0 => frame(HEADERS, END_HEADERS, 1, ANSWER),
            _ => frame(DATA, 0, 1, &[b'x'; 16 << 10]),
        },
        ends: false,
    },
    Attack { name: "another protocol", round: |_| b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), ends: true },
];
