//! Takes connections and speaks HTTP on them, until the end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use super::bodies::{Arriving, Leaving};
use super::connections::{Connections, Patience, Place};
use super::exposure::{self, Consent, Exposure};
use super::line::{Line, Phase};
use super::tls::Tls;
use super::watched::Watched;
use crate::http;
use crate::seam;

/// Most bytes of a head that are read at all. The limit that callers are told is lower, so that they are told.
const HEAD_BUFFER_BYTES: usize = 64 << 10;
/// How long to wait when the system gives no connection, such as when there are too many open files.
const NO_CONNECTION: Duration = Duration::from_millis(100);
/// How often connections are looked at while they end.
const ENDING: Duration = Duration::from_millis(100);

/// A listener with everything that its connections need.
#[derive(Debug)]
pub(crate) struct Door {
    listener: TcpListener,
    tls: Option<Tls>,
    connections: Connections,
    /// Who can reach it.
    pub(crate) exposure: Exposure,
}

/// Listens on an address, unless others could reach it who should not; a name is judged by the address it stands for.
pub(crate) async fn open(
    listen: &str,
    consent: Consent,
    tls: Option<Tls>,
    patience: Patience,
    otherwise: &str,
) -> Result<Door, String> {
    let no_address = |why: String| format!("cannot listen on {listen}: {why}");
    let mut found = tokio::net::lookup_host(listen).await.map_err(|error| no_address(error.to_string()))?;
    let address = found.next().ok_or_else(|| no_address("the name stands for no address".to_owned()))?;
    let exposure = exposure::check(address, consent)?;
    let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{address} is taken, maybe by another laneway; choose another port: {otherwise}")
        }
        _ => no_address(error.to_string()),
    })?;
    Ok(Door { listener, tls, connections: Connections::new(patience), exposure })
}

impl Door {
    /// The address that is bound.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What callers write before the address.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Takes connections until `close` has come; then lets answers that are under way finish.
    pub(crate) async fn serve(self, router: Router, close: impl Future<Output = ()>) {
        let Self { listener, tls, connections, .. } = self;
        let (closing, closed) = watch::channel(false);
        // Every connection has a sender, so that the last one to end is noticed.
        let (open, mut all_ended) = mpsc::channel::<()>(1);
        let taking = async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let talk =
                            Talk { router: router.clone(), closed: closed.clone(), open: open.clone() };
                        admit(stream, tls.as_ref(), &connections, talk);
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no connection can be taken");
                        seam::pass(NO_CONNECTION).await;
                    }
                }
            }
        };
        tokio::select! {
            () = taking => {}
            () = connections.watch() => {}
            () = close => {}
        }
        drop((listener, open));
        closing.send_replace(true);
        loop {
            // Whoever has not sent a whole request has no answer to wait for.
            connections.cut_unheard();
            tokio::select! {
                // Nobody sends: it resolves when all senders are gone.
                _ = all_ended.recv() => return,
                () = seam::pass(ENDING) => {}
            }
        }
    }
}

/// What a connection is served with.
struct Talk {
    router: Router,
    closed: watch::Receiver<bool>,
    open: mpsc::Sender<()>,
}

fn admit(stream: TcpStream, tls: Option<&Tls>, connections: &Connections, talk: Talk) {
    let Some(place) = connections.enter() else {
        tracing::warn!("all places for connections are taken by calls under way; one more was refused");
        if tls.is_none() {
            // Whoever cannot be told is closed without a word.
            drop(stream.try_write(&http::no_place_left()));
        }
        return;
    };
    // Answers are small and waited for.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection cannot send small answers at once");
    }
    let acceptor = tls.map(|tls| TlsAcceptor::from(tls.config()));
    let patience = connections.patience();
    seam::spawn(async move {
        let line = Arc::clone(&place.line);
        tokio::select! {
            () = line.is_cut() => tracing::debug!("a connection that kept the server waiting was closed"),
            () = converse(stream, acceptor, patience, &place, talk) => {}
        }
    });
}

async fn converse(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    patience: Patience,
    place: &Place,
    talk: Talk,
) {
    let stream = Watched::new(stream, Arc::clone(&place.line));
    match acceptor {
        None => speak(stream, patience, &place.line, talk).await,
        // What TLS needs is large: it is kept elsewhere, so that connections without it stay small.
        Some(acceptor) => match Box::pin(acceptor.accept(stream)).await {
            Ok(stream) => Box::pin(speak(stream, patience, &place.line, talk)).await,
            Err(error) => tracing::debug!(%error, "a handshake failed"),
        },
    }
}

async fn speak<S>(stream: S, patience: Patience, line: &Arc<Line>, talk: Talk)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Talk { router, mut closed, open: _open } = talk;
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request: Request<Incoming>| {
        line.enter(Phase::Working);
        let request = request.map(|body| {
            if body.is_end_stream() {
                return Body::empty();
            }
            Body::new(Arriving::new(body, Arc::clone(line), patience.body))
        });
        let (answer, line) = (router.call(request), Arc::clone(line));
        async move { answer.await.map(|answer: Response<Body>| answer.map(|body| Leaving::new(body, line))) }
    });
    let mut builder = http1::Builder::new();
    // Whoever watches the lines knows heads, bodies and idle connections apart.
    builder.header_read_timeout(None).max_buf_size(HEAD_BUFFER_BYTES);
    let conversation = builder.serve_connection(TokioIo::new(stream), service);
    let mut conversation = std::pin::pin!(conversation);
    // A sender that is gone means the same.
    let closed = async { drop(closed.wait_for(|closed| *closed).await) };
    let ended = tokio::select! {
        ended = conversation.as_mut() => ended,
        () = closed => {
            conversation.as_mut().graceful_shutdown();
            conversation.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
