//! A server on loopback that answers as no server should, and the table of what it may do.
//!
//! Every client of ours meets [`behaviours`]. It has to end each with an error of the kind that stands beside it, in its own
//! time, having read no more than its limit, and the connection has to end: [`Server::sent`] and [`Server::left`] tell.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Bytes that may be on the way, in buffers of the kernel and of the client, when a client closes a connection.
pub const ON_THE_WAY: u64 = 16 << 20;

/// How a client should end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A limit of the body.
    TooLarge,
    /// A limit of the head, which need not be told from an answer that is none.
    Headers,
    /// A limit of time.
    Late,
    /// It is no answer.
    Broken,
}

/// Sent after the head of a request: `first`, then `again` without end unless it is empty; then nothing, or the end.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Once.
    pub first: Vec<u8>,
    /// Repeatedly.
    pub again: Vec<u8>,
    /// Before each repetition.
    pub pause: Duration,
    /// Whether the connection stays open after `first`.
    pub stays: bool,
}

/// One way to misbehave.
#[derive(Clone, Debug)]
pub struct Behaviour {
    /// For messages of tests.
    pub name: &'static str,
    /// What is sent.
    pub script: Script,
    /// What a client should make of it.
    pub ending: Ending,
}

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// All of them. The bodies hold no end of a line, so a line without end they are as well.
#[must_use]
pub fn behaviours() -> Vec<Behaviour> {
    use Ending::{Broken, Headers, Late, TooLarge};
    let chunk = [format!("{:x}\r\n", 64 << 10).into_bytes(), vec![b'x'; 64 << 10], b"\r\n".to_vec()].concat();
    let flood = vec![b'x'; 64 << 10];
    let chunked = format!("{OK}transfer-encoding: chunked\r\n\r\n");
    let row = |name, first: &str, again: &[u8], ending| {
        // Slow bytes come one after the other.
        let pause = if ending == Late { Duration::from_millis(5) } else { Duration::ZERO };
        let stays = ending == Late && again.is_empty();
        Behaviour { name, script: Script { first: first.into(), again: again.into(), pause, stays }, ending }
    };
    vec![
        row("a body without end", &format!("{OK}\r\n"), &flood, TooLarge),
        row("chunks without end", &chunked, &chunk, TooLarge),
        row("a length that lies", &format!("{OK}content-length: 9999999999999\r\n\r\n"), &flood, TooLarge),
        // Its first bytes are gzip's; whoever unpacked it would have a thousand times as much.
        row("a packed body", &format!("{OK}content-encoding: gzip\r\n\r\n\u{1f}"), &flood, TooLarge),
        row("an error without end", "HTTP/1.1 500 Internal Server Error\r\n\r\n", &flood, TooLarge),
        row("headers without end", OK, "x-flood: yes\r\n".repeat(1_000).as_bytes(), Headers),
        row("one header without end", &format!("{OK}x: "), &flood, Headers),
        row("a status line without end", "HTTP/1.1 200 ", &flood, Headers),
        row(
            "a length that there is not",
            &format!("{OK}content-length: 18446744073709551616\r\n\r\n"),
            &flood,
            Headers,
        ),
        row("no answer", "", b"", Late),
        row("a slow head", OK, b"x", Late),
        row("a slow body", &format!("{OK}content-length: 1000000\r\n\r\n"), b"x", Late),
        row("slow chunks", &chunked, b"1\r\nx\r\n", Late),
        row("a body that stops", &format!("{OK}content-length: 1000000\r\n\r\nx"), b"", Late),
        row("nothing but early hints", "", b"HTTP/1.1 103 Early Hints\r\n\r\n", Late),
        row("the end of the connection", "", b"", Broken),
        row("less than it says", &format!("{OK}content-length: 100\r\n\r\nshort"), b"", Broken),
        row("two lengths", &format!("{OK}content-length: 1\r\ncontent-length: 2\r\n\r\nxx"), b"", Broken),
        row("a wild chunk", &format!("{chunked}ffffffffffffffffff\r\n"), b"", Broken),
        row("another protocol", "SSH-2.0-OpenSSH_9.9\r\n", b"", Broken),
    ]
}

/// A server that does the same with every connection.
pub struct Server {
    /// Where it listens, without TLS.
    pub address: SocketAddr,
    sent: Arc<AtomicU64>,
    open: Arc<(Mutex<usize>, Condvar)>,
}

impl Server {
    /// Listens on a port of its own until the test's process ends.
    #[must_use]
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let address = listener.local_addr().expect("a listener has an address");
        let (sent, open) = (Arc::<AtomicU64>::default(), Arc::<(Mutex<usize>, Condvar)>::default());
        let (count, connections) = (sent.clone(), open.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                *connections.0.lock().expect("nobody panics with it") += 1;
                let (script, count, connections) = (script.clone(), count.clone(), connections.clone());
                thread::spawn(move || {
                    let _closed_by_the_client = answer(stream, &script, &count);
                    *connections.0.lock().expect("nobody panics with it") -= 1;
                    connections.1.notify_all();
                });
            }
        });
        Server { address, sent, open }
    }

    /// Bytes that could be sent so far, on all connections.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Waits, with the whole thread, until all connections are closed; whether they were in twenty seconds.
    #[must_use]
    pub fn left(&self) -> bool {
        let open = self.open.0.lock().expect("nobody panics with it");
        let waited = self.open.1.wait_timeout_while(open, Duration::from_secs(20), |open| *open > 0);
        !waited.expect("nobody panics with it").1.timed_out()
    }
}

fn answer(mut stream: TcpStream, script: &Script, sent: &AtomicU64) -> io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut send = |bytes: &[u8]| {
        stream.write_all(bytes)?;
        sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        io::Result::Ok(())
    };
    send(&script.first)?;
    while !script.again.is_empty() {
        thread::sleep(script.pause);
        send(&script.again)?;
    }
    // Until the client goes.
    while script.stays && stream.read(&mut byte)? > 0 {}
    Ok(())
}
