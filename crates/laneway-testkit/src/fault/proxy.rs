//! A proxy between a client and a server that does to their connections what networks do.
//!
//! It knows nothing of what is said: every server that listens on TCP can be behind it. It lives on threads of its own, so that it
//! serves plain tests, tests of a runtime and child processes alike, and ends when it is dropped. Nobody has to guess how long a
//! fault must last: the proxy counts what met it, and [`Proxy::until`] waits for that.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::seam;

/// Bytes that are carried at one time.
const CHUNK: usize = 64 * 1024;

/// What the road between client and server is like, for all connections, open ones and new ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Road {
    /// Everything passes.
    #[default]
    Open,
    /// Nothing passes, either way, and nobody is told. What was under way arrives once the road is open again, however
    /// late that is.
    BlackHole,
    /// Connections end, and new ones end at once.
    Cut,
    /// What the client sends arrives, what it is answered does not. A connection that has lost something ends when the
    /// road changes: its rest would make no sense.
    RepliesLost,
    /// Everything arrives so much later.
    Slow(Duration),
    /// Of the next thing the client sends, half arrives; then the connection ends.
    HalfRequest,
    /// Of the next thing the client is answered, half arrives; then the connection ends.
    HalfReply,
}

impl Road {
    /// One of each kind, the slow one by so much.
    pub fn all(slow_by: Duration) -> [Self; 7] {
        [
            Self::Open,
            Self::BlackHole,
            Self::Cut,
            Self::RepliesLost,
            Self::Slow(slow_by),
            Self::HalfRequest,
            Self::HalfReply,
        ]
    }
}

/// What a proxy has done so far. Chunks are what one read of a socket gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Connections that clients made.
    pub connections: u64,
    /// Connections that were ended by a cut, a half chunk or the end of a road that lost replies.
    pub cut: u64,
    /// Chunks that arrived whole and at once.
    pub passed: u64,
    /// Chunks that had to wait for the end of a black hole.
    pub held: u64,
    /// Answers that were lost.
    pub lost: u64,
    /// Chunks that came late.
    pub delayed: u64,
    /// Chunks of which half arrived.
    pub halved: u64,
}

impl Carried {
    /// How many chunks, or for a cut connections, have met this kind of road.
    pub fn met(&self, road: Road) -> u64 {
        match road {
            Road::Open => self.passed,
            Road::BlackHole => self.held,
            Road::Cut => self.cut,
            Road::RepliesLost => self.lost,
            Road::Slow(_) => self.delayed,
            Road::HalfRequest | Road::HalfReply => self.halved,
        }
    }
}

/// A proxy in front of one server.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use laneway_testkit::fault::{Proxy, Road};
///
/// let server = TcpListener::bind("127.0.0.1:0")?;
/// let proxy = Proxy::start(server.local_addr()?)?;
/// let mut client = TcpStream::connect(proxy.address())?;
/// client.write_all(b"hello")?;
/// let (mut served, _) = server.accept()?;
/// let mut heard = [0; 5];
/// served.read_exact(&mut heard)?;
/// assert_eq!(&heard, b"hello");
///
/// proxy.set(Road::Cut);
/// assert_eq!(client.read(&mut heard)?, 0); // as if the server had hung up
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    road: watch::Sender<State>,
    carried: watch::Sender<Carried>,
    server: watch::Sender<SocketAddr>,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl Proxy {
    /// A proxy on a free loopback port, with an open road to this server. The server need not be there yet.
    pub fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (road, carried) = (watch::Sender::default(), watch::Sender::default());
        let server = watch::Sender::new(server);
        let runtime = seam::runtime();
        {
            let _inside = runtime.enter();
            let listener = TcpListener::from_std(listener)?;
            let shared = Shared { road: road.clone(), carried: carried.clone() };
            seam::spawn(accept(listener, server.subscribe(), shared));
        }
        Ok(Self { address, road, carried, server, runtime: Some(runtime) })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on the road is like this. Connections that had no time to see the road before this one did not meet it.
    pub fn set(&self, road: Road) {
        self.road.send_modify(|state| state.road = road);
    }

    /// Ends every connection that is open now; the road stays what it is, and new ones take it.
    pub fn cut_open(&self) {
        self.road.send_modify(|state| state.cuts += 1);
    }

    /// New connections lead to this server, as after a failover; open ones stay where they are.
    pub fn lead_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    /// What the road is like.
    pub fn road(&self) -> Road {
        self.road.borrow().road
    }

    /// What was carried so far.
    pub fn carried(&self) -> Carried {
        *self.carried.borrow()
    }

    /// Waits until what was carried is so.
    pub async fn until(&self, reached: impl FnMut(&Carried) -> bool) -> Carried {
        let mut carried = self.carried.subscribe();
        *carried.wait_for(reached).await.expect("the proxy has the other end")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Not waited for: this may be a task of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the road is like, and how often open connections were ended.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    road: Road,
    cuts: u64,
}

/// What all connections of a proxy share.
#[derive(Clone)]
struct Shared {
    road: watch::Sender<State>,
    carried: watch::Sender<Carried>,
}

impl Shared {
    fn count(&self, count: impl FnOnce(&mut Carried)) {
        self.carried.send_modify(count);
    }
}

async fn accept(listener: TcpListener, server: watch::Receiver<SocketAddr>, shared: Shared) {
    // A connection that ended before it was accepted is the client's business, and it comes again.
    loop {
        if let Ok((client, _)) = listener.accept().await {
            shared.count(|carried| carried.connections += 1);
            let (server, cuts) = (*server.borrow(), shared.road.borrow().cuts);
            seam::spawn(connect(client, server, cuts, shared.clone()));
        }
    }
}

async fn connect(client: TcpStream, server: SocketAddr, cuts: u64, shared: Shared) {
    // Without a server the client finds its connection ended.
    let Ok(server) = TcpStream::connect(server).await else { return };
    // Frames are small and are waited for. A socket that refuses has ended, which carrying finds out.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let requests = carry(from_client, to_server, Direction::Request, cuts, &shared);
    let replies = carry(from_server, to_client, Direction::Reply, cuts, &shared);
    if tokio::try_join!(requests, replies) == Err(Broken::Cut) {
        shared.count(|carried| carried.cut += 1);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Reply,
}

/// Why a connection ends both ways at once.
#[derive(PartialEq, Eq)]
enum Broken {
    /// The road broke it.
    Cut,
    /// One of its ends did.
    End,
}

/// Carries bytes one way until their source ends.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    direction: Direction,
    cuts: u64,
    shared: &Shared,
) -> Result<(), Broken> {
    let mut road = shared.road.subscribe();
    let is_cut = |state: &State| state.road == Road::Cut || state.cuts != cuts;
    let mut chunk = vec![0; CHUNK];
    loop {
        let length = tokio::select! {
            _ = road.wait_for(is_cut) => return Err(Broken::Cut),
            read = from.read(&mut chunk) => read.map_err(|_| Broken::End)?,
        };
        if length == 0 {
            return to.shutdown().await.map_err(|_| Broken::End);
        }
        let (mut through, mut is_held) = (length, false);
        loop {
            let now = *road.borrow_and_update();
            if is_cut(&now) {
                return Err(Broken::Cut);
            }
            match now.road {
                Road::Open => shared.count(|carried| carried.passed += 1),
                Road::BlackHole => {
                    if !std::mem::replace(&mut is_held, true) {
                        shared.count(|carried| carried.held += 1);
                    }
                    road.changed().await.map_err(|_| Broken::Cut)?;
                    continue;
                }
                Road::RepliesLost if direction == Direction::Reply => {
                    return lose(&mut from, &mut chunk, cuts, &mut road, shared).await;
                }
                Road::Slow(by) => {
                    shared.count(|carried| carried.delayed += 1);
                    seam::pass(by).await;
                }
                Road::HalfRequest if direction == Direction::Request => through = length / 2,
                Road::HalfReply if direction == Direction::Reply => through = length / 2,
                // A cut was found above.
                Road::RepliesLost | Road::HalfRequest | Road::HalfReply | Road::Cut => {
                    shared.count(|carried| carried.passed += 1);
                }
            }
            break;
        }
        to.write_all(&chunk[..through]).await.map_err(|_| Broken::End)?;
        if through < length {
            shared.count(|carried| carried.halved += 1);
            return Err(Broken::Cut);
        }
    }
}

/// Drops what is answered for as long as the road loses answers.
async fn lose(
    from: &mut OwnedReadHalf,
    chunk: &mut [u8],
    cuts: u64,
    road: &mut watch::Receiver<State>,
    shared: &Shared,
) -> Result<(), Broken> {
    loop {
        shared.count(|carried| carried.lost += 1);
        let read = tokio::select! {
            _ = road.wait_for(|state| state.road != Road::RepliesLost || state.cuts != cuts) => return Err(Broken::Cut),
            read = from.read(chunk) => read,
        };
        if !matches!(read, Ok(1..)) {
            return Err(Broken::End);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};

    use futures::executor::block_on;

    use super::*;

    /// A client and its server with a proxy between them.
    struct Pair {
        proxy: Proxy,
        listener: TcpListener,
        client: TcpStream,
        server: TcpStream,
    }

    impl Pair {
        fn new() -> Self {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
            let client = TcpStream::connect(proxy.address()).unwrap();
            let (server, _) = listener.accept().unwrap();
            Self { proxy, listener, client, server }
        }

        fn asks(&mut self, text: &str) {
            self.client.write_all(text.as_bytes()).unwrap();
        }

        fn answers(&mut self, text: &str) {
            self.server.write_all(text.as_bytes()).unwrap();
        }
    }

    fn heard(from: &mut TcpStream, length: usize) -> String {
        let mut bytes = vec![0; length];
        from.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// All that still comes before the connection ends, in whatever way.
    fn rest(from: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        match from.read_to_end(&mut bytes) {
            Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("{error}"),
            _ => String::from_utf8(bytes).unwrap(),
        }
    }

    #[test]
    fn an_open_road_carries_both_ways_and_tells_ends() {
        let mut pair = Pair::new();
        pair.asks("ping");
        assert_eq!(heard(&mut pair.server, 4), "ping");
        pair.answers("pong");
        assert_eq!(heard(&mut pair.client, 4), "pong");
        pair.client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(rest(&mut pair.server), "");
        pair.answers("bye");
        drop(pair.server);
        assert_eq!(rest(&mut pair.client), "bye");
        assert_eq!(pair.proxy.carried().cut, 0);
    }

    #[test]
    fn what_a_black_hole_held_arrives_late_even_if_its_sender_is_gone() {
        let mut pair = Pair::new();
        pair.proxy.set(Road::BlackHole);
        pair.asks("late");
        block_on(pair.proxy.until(|carried| carried.held == 1));
        pair.server.set_nonblocking(true).unwrap();
        assert_eq!(pair.server.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        pair.server.set_nonblocking(false).unwrap();
        drop(pair.client);
        pair.proxy.set(Road::Open);
        assert_eq!(rest(&mut pair.server), "late");
    }

    #[test]
    fn a_cut_ends_open_connections_and_new_ones() {
        let mut pair = Pair::new();
        pair.proxy.set(Road::Cut);
        assert_eq!((rest(&mut pair.client), rest(&mut pair.server)), (String::new(), String::new()));
        let mut next = TcpStream::connect(pair.proxy.address()).unwrap();
        assert_eq!(rest(&mut next), "");
        pair.proxy.set(Road::Open);
        drop(pair.listener.accept().unwrap());
        let mut next = TcpStream::connect(pair.proxy.address()).unwrap();
        next.write_all(b"again").unwrap();
        assert_eq!(heard(&mut pair.listener.accept().unwrap().0, 5), "again");
    }

    #[test]
    fn connections_that_are_open_end_at_once_and_new_ones_go_on() {
        let mut pair = Pair::new();
        let elsewhere = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        pair.proxy.lead_to(elsewhere.local_addr().unwrap());
        pair.proxy.cut_open();
        assert_eq!((rest(&mut pair.client), rest(&mut pair.server)), (String::new(), String::new()));
        let mut next = TcpStream::connect(pair.proxy.address()).unwrap();
        next.write_all(b"again").unwrap();
        assert_eq!(heard(&mut elsewhere.accept().unwrap().0, 5), "again");
    }

    #[test]
    fn lost_replies_end_their_connection_when_the_road_opens() {
        let mut pair = Pair::new();
        pair.proxy.set(Road::RepliesLost);
        pair.asks("ping");
        assert_eq!(heard(&mut pair.server, 4), "ping");
        pair.answers("pong");
        block_on(pair.proxy.until(|carried| carried.lost == 1));
        pair.proxy.set(Road::Open);
        assert_eq!((rest(&mut pair.client), rest(&mut pair.server)), (String::new(), String::new()));
    }

    #[test]
    fn half_of_a_frame_arrives_and_nothing_after_it() {
        for (road, of_request, of_reply) in
            [(Road::HalfRequest, "re", ""), (Road::HalfReply, "request!", "an")]
        {
            let mut pair = Pair::new();
            pair.proxy.set(road);
            pair.asks(if of_reply.is_empty() { "req!" } else { "request!" });
            assert_eq!(heard(&mut pair.server, of_request.len()), of_request);
            if !of_reply.is_empty() {
                pair.answers("answ");
            }
            assert_eq!(
                (rest(&mut pair.client), rest(&mut pair.server)),
                (of_reply.to_owned(), String::new())
            );
            assert_eq!(pair.proxy.carried().halved, 1);
        }
    }

    #[test]
    fn a_slow_road_carries_everything_later() {
        let mut pair = Pair::new();
        pair.proxy.set(Road::Slow(Duration::from_millis(5)));
        pair.asks("ping");
        assert_eq!(heard(&mut pair.server, 4), "ping");
        assert_eq!(pair.proxy.carried().delayed, 1);
    }
}
